"""Texts of question files that nobody can tell apart: doubted or refused, by file and row."""

import json
import warnings

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from conceptnb.steering.questions import Question, read_questions
from conceptnb.steering.spans import encode_questions

HEADER = "question,best_answer,incorrect_answers\n"
COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"
PAIRS = {
    "composition": (COMPOSED, DECOMPOSED),
    "spaces": ("two words", "two  words"),
    "no-break space": ("two words", "two\u00a0words"),
    "zero width": ("word", "wo\u200brd"),
    "soft hyphen": ("word", "wo\u00adrd"),
    "variation": ("so\ufe0f", "so"),
    "filler": ("so\u3164", "so"),
    "order of marks": ("q\u0323\u0307", "q\u0307\u0323"),
}


def write(tmp_path, text, name="q.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def lines(tmp_path, *rows):
    return write(tmp_path, "\n".join(map(json.dumps, rows)) + "\n", "q.jsonl")


def row(question="why?", best="so", wrong=("no",), **more):
    return {"question": question, "best_answer": best, "incorrect_answers": list(wrong), **more}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_answers_that_look_alike_are_not_right_and_wrong(pair, tmp_path):
    one, other = pair
    files = [
        write(tmp_path, HEADER + f"how?,a,b\nwhy?,{one},x;{other}\n"),
        lines(tmp_path, row("how?"), row(best=other, wrong=[one])),
        lines(tmp_path, row("how?"), row(wrong=[one], correct_answers=[other])),
    ]
    for path in files:
        said = r"q.(csv|jsonl), row [23]: .* by spaces, .* one is right, the other wrong"
        with pytest.raises(ValueError, match=said):
            read_questions(path)
        with pytest.warns(UserWarning, match=r"q.* row [23]: .* differs from"):
            read_questions(path, contradictions=True)


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_questions_and_answers_of_one_side_that_look_alike_are_doubted(pair, tmp_path):
    one, other = (f"{x} ?" for x in pair)
    path = write(tmp_path, HEADER + f"{one},a,b\nhow?,a,b\n{other},a,b\n")
    with pytest.warns(UserWarning, match=r"q.csv: row 4: .* in row 2 by spaces, composition"):
        assert len(read_questions(path)) == 3
    path = write(tmp_path, HEADER + f"how?,a,{one};{other}\n")
    with pytest.warns(UserWarning, match="row 2: .* by spaces, composition or invisible"):
        assert len(read_questions(path)[0].answers) == 3


def test_words_that_a_space_parts_are_doubted_and_not_refused(tmp_path):
    path = write(tmp_path, HEADER + "w5 w6?,apart,a part\nw5 w6 ?,a,b\n")
    with pytest.warns(UserWarning, match=r"row 2: 'a part'.*row 3: 'w5 w6 \?' differs from"):
        read_questions(path)


@pytest.mark.parametrize("mark", ["\x00", "\x01", "\x08", "\x1b", "\x7f", "\x9f", "\ud800"])
def test_control_characters_are_refused(mark, tmp_path):
    code = f"U\\+{ord(mark):04X}"
    for given in (row(f"wh{mark}y?"), row(best=f"s{mark}o"), row(wrong=["no", f"n{mark}"])):
        path = lines(tmp_path, row("how?"), given)
        with pytest.raises(ValueError, match=rf"jsonl, row 2: .* control characters \({code}\)"):
            read_questions(path)


@pytest.mark.parametrize("mark", ["\x0b", "\x0c", "\x1c", "\x85"])
def test_other_ends_of_lines_are_kept_and_doubted(mark, tmp_path):
    path = lines(tmp_path, row(f"why{mark}not?"))
    with pytest.warns(UserWarning, match=r"row 1: .* control characters"):
        assert read_questions(path)[0].text == f"why{mark}not?"


@pytest.mark.parametrize("text", ["\u200b", "\ufeff\u2060", "\u3164", "\u2800", "\u00ad \u200b"])
def test_texts_that_show_nothing_are_refused(text, tmp_path):
    for given in (row(text), row(best=text), row(wrong=["no", text])):
        with pytest.raises(ValueError, match=r"jsonl, row 1: .* shows nothing"):
            read_questions(lines(tmp_path, given))


def test_invisible_characters_are_doubted_and_spellings_are_not(tmp_path):
    path = lines(tmp_path, row("how?"), row(best="s\u200bo"))
    with pytest.warns(UserWarning, match=r"row 2: .* invisible characters \(U\+200B\)"):
        read_questions(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_questions(lines(tmp_path, row("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645?")))
        read_questions(lines(tmp_path, row(best="na\u00efve; so", wrong=["a;b"])))


@pytest.mark.parametrize("token", ["<|im_end|>", "</s>", "<end_of_turn>", "[INST]", "<|eot_id|>"])
def test_what_looks_like_a_special_token_is_doubted_by_row(token, tmp_path):
    path = lines(tmp_path, row("how?"), row(wrong=["no", f"no{token}"]))
    with pytest.warns(UserWarning, match=r"q.jsonl: row 2: .* looks like a special token"):
        read_questions(path)


def test_a_best_answer_with_the_separator_is_doubted(tmp_path):
    path = write(tmp_path, HEADER + "how?,a,b;c\nwhy?,yes; no,b;c\n")
    with pytest.warns(UserWarning, match=r"row 3: the best answer 'yes; no' stays whole"):
        assert read_questions(path)[1].answers == ("yes; no", "b", "c")


def test_only_the_first_rows_are_named(tmp_path):
    rows = "".join(f"why {k}?,a; b,c\n" for k in range(9))
    with pytest.warns(UserWarning, match=r"row 2: .*row 6: .*; and 4 more$") as caught:
        read_questions(write(tmp_path, HEADER + rows))
    assert len(caught) == 1


@pytest.mark.parametrize("style", ["paper", "lm-eval", "chat"])
@pytest.mark.parametrize("where", ["question", "answer"])
def test_a_models_own_special_tokens_are_refused_in_texts(style, where):
    words = ["<unk>", "Q", "A", ":", "why", "so", "no", "?"]
    inner = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token="<unk>", eos_token="~end~", chat_template="{{ messages }}"
    )
    fine = Question("fine", "why?", ("so", "no"), (True, False))
    texts = ("why ~end~?", ("so", "no")) if where == "question" else ("why?", ("so", "no ~end~"))
    odd = Question("odd", *texts, (True, False))
    encode_questions(tokenizer, [fine], style=style)
    with pytest.raises(ValueError, match=r"question 'odd': .* holds '~end~', a special token"):
        encode_questions(tokenizer, [fine, odd], style=style)
