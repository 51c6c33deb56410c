"""Random tables, question files, designs, arrays and checkpoints, against a second reading of each.

What is right is worked out here by other means: exact fractions, every matching, the csv module,
a run that nothing disturbs. Anything may be refused that is wrong, by a ValueError or TypeError
that names the file or the argument; nothing may be read wrongly. Few cases by default, many with
`--hypothesis-profile=fuzz`, as once a week.
"""

import csv
import itertools
import json
import os
import re
import signal
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from scipy.stats import pearsonr, rankdata
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from conceptnb import results
from conceptnb.core.design import EnvironmentDesign
from conceptnb.core.scores import mcc, r2
from conceptnb.learning.environment_tables import from_arrays, read_environments
from conceptnb.results import runner
from conceptnb.results.runner import Plan, Task
from conceptnb.results.summarise import summary
from conceptnb.steering.question_texts import visible
from conceptnb.steering.questions import Question, read_questions, write_questions
from tests.conftest import without_times

pytestmark = pytest.mark.slow
REFUSALS = (ValueError, TypeError)
SEEDS = st.integers(0, 2**32 - 1)

PLAIN = st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp", "Cn", "Co"])
"""Characters of a line of text: no control characters, and nothing that ends a line."""
NAMES = st.one_of(
    st.sampled_from(["dark", "é ü", "0", "-1", "a,b", 'say "x"', "nan ", "None", "NA", "=1+1"]),
    st.text(PLAIN, min_size=1, max_size=8),
)


@pytest.fixture(scope="module")
def folder():
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


# Tables of environments

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
BAD_CELLS = ["", " ", "nan", "NA", "None", "null", "?", "1,5", "abc", "1e400", "-inf", "1_000",
             "٣", "0x10", "1 2", "--1", "1e3.5", "TRUE", "12%"]  # fmt: skip
SPECIAL = ["", "", "ids", "ids", "code", "code", "bad cell", "constant", "short", "huge"]


@st.composite
def tables(draw):
    """Return header, rows, base, what is special, and the name of the column where it is."""
    rng = np.random.default_rng(draw(SEEDS))
    fewest = draw(st.sampled_from([2, 2, 2, 1]))
    names = draw(st.lists(NAMES, min_size=fewest, max_size=4, unique_by=str.strip))
    few = draw(st.sampled_from([20, 20, 20, 20, 3]))
    sizes = [draw(st.integers(few, 40)) for _ in names]
    labels = [name for name, size in zip(names, sizes, strict=True) for _ in range(size)]
    order = rng.permutation(len(labels))
    labels = [labels[i] for i in order]
    width = draw(st.integers(1, 3))
    X = rng.normal(size=(len(labels), width)) * 10.0 ** draw(st.integers(-3, 3))
    X += draw(st.sampled_from([0.0, 5.0, -1000.0]))
    columns = draw(st.lists(NAMES, min_size=width, max_size=width, unique_by=str.strip))
    assume("environment" not in [c.strip() for c in columns])
    style = draw(st.sampled_from(["{!r}", "{:.6e}", "{:+.5f}", " {!r} ", "{:.4f}"]))
    cells = [[style.format(float(x)) for x in row] for row in X]
    special = draw(st.sampled_from(SPECIAL))
    column = draw(st.integers(0, width - 1))
    rows = rng.permutation(len(labels))[: draw(st.integers(1, 6))]
    if special == "ids":
        for k, row in enumerate(cells):
            row[column] = str(1000 + k)
    for row in rows:
        if special == "bad cell":
            cells[row][column] = draw(st.sampled_from(BAD_CELLS))
        elif special == "code":
            cells[row][column] = draw(st.sampled_from(["-999", "9999"]))
        elif special == "huge":
            cells[row][column] = "1e300"
    if special == "constant":
        for row in cells:
            row[column] = "3.5"
    place = draw(st.integers(0, width))
    header = [*columns[:place], "environment", *columns[place:]]
    body = [[*c[:place], label, *c[place:]] for c, label in zip(cells, labels, strict=True)]
    if special == "short":
        body[rows[0]] = body[rows[0]][:-1]
    base = draw(st.sampled_from([*(3 * [name.strip() for name in names]), names[0], "another"]))
    return header, body, base, special, columns[column].strip()


def faults_of(header, body, base):
    """Return what is wrong with a table, by rules of a line each."""
    if any(len(row) != len(header) for row in body):
        return ["cells where the header has"]
    at = header.index("environment")
    labels = [row[at].strip() for row in body]
    found = []
    for k, name in enumerate(header):
        if k == at:
            continue
        cells = [row[k].strip() for row in body]
        numbers = [float(c) for c in cells if NUMBER.fullmatch(c)]
        if (
            len(numbers) < len(cells)
            or not np.isfinite(numbers).all()
            or max(map(abs, numbers)) > 1e15
        ):
            found.append(repr(name.strip()))
        elif len(set(numbers)) == 1:
            found.append("hold one value only")
        else:
            quarter = np.percentile(numbers, [25, 50, 75])
            far = np.abs(np.array(numbers) - quarter[1]).max()
            if quarter[2] > quarter[0] and far > 1e4 * (quarter[2] - quarter[0]):
                found.append("is huge beside the median")
    counts = {name: labels.count(name) for name in labels}
    if base.strip() not in counts or base != base.strip():
        found.append("is no environment")
    if len(counts) == 1:
        found.append("all rows are of")
    if min(counts.values()) < 20:
        found.append("too few rows")
    if {"", "na", "nan", "null", "none", "n/a", "<na>", "nat"} & {name.lower() for name in counts}:
        found.append("is missing")
    return found


@given(tables(), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]), st.booleans())
def test_tables_are_read_as_they_are_or_refused_by_name(folder, table, quoting, mark):
    header, body, base, special, column = table
    file = folder / "table.csv"
    with file.open("w", encoding="utf-8-sig" if mark else "utf-8", newline="") as opened:
        csv.writer(opened, quoting=quoting).writerows([header, *body])
    faults = faults_of(header, body, base)
    try:
        found = read_environments(file, base)
    except REFUSALS as error:
        event("refused")
        assert any(fault in str(error) for fault in faults), (str(error), faults)
        assert "table.csv" in str(error)
        return
    event("read")
    assert set(faults) <= {"is missing"}  # an environment that the caller names may be called None
    at = header.index("environment")
    names = [row[at].strip() for row in body]
    assert [found.names[e] for e in found.environment] == names
    assert found.names[0] == base
    assert found.counts == {name: names.count(name) for name in found.names}
    expected = [[float(c) for k, c in enumerate(row) if k != at] for row in body]
    np.testing.assert_array_equal(found.X, expected)
    assert found.columns == [name.strip() for name in header if name != "environment"]
    said = found.suspicious_columns()
    if special == "ids":
        assert any(line.startswith(repr(column)) for line in said)
    values = found.X[:, found.columns.index(column)]
    others = values[~np.isin(values, [-999, 9999])]
    for code in {-999, 9999} & {*values} if special == "code" else ():
        far = np.abs(others - code).min() > 2 * np.ptp(others)  # and not among them
        if far and len({*others}) >= 10:
            assert any(f"{column!r} is {code} in" in line and "missing" in line for line in said)


@given(st.binary(max_size=200), st.sampled_from(["t.csv", "q.csv", "q.jsonl", "q.json"]))
def test_files_of_any_bytes_are_refused_by_name(folder, content, name):
    file = folder / name
    file.write_bytes(content)
    read = (
        (lambda: read_environments(file, "any"))
        if name == "t.csv"
        else (lambda: read_questions(file))
    )
    with pytest.raises(REFUSALS, match=re.escape(name)):
        read()


LABELS = st.sampled_from(["any", "a", "b", " a", "", None, float("nan"), 3, True, b"a"])


@given(SEEDS, st.lists(LABELS, min_size=0, max_size=5), st.integers(15, 25),
       st.sampled_from(["any", "a", "", "3", None]), st.sampled_from([0, 0, 0, 1, 2]))  # fmt: skip
def test_arrays_are_taken_as_they_are_or_refused(seed, labels, each, base, bad):
    rng = np.random.default_rng(seed)
    environment = [label for label in labels for _ in range(each)]
    X = rng.normal(size=(len(environment), 2))
    if bad == 1 and len(X):
        X[rng.integers(len(X)), 0] = rng.choice([np.nan, np.inf, -np.inf])
    if bad == 2:
        X = X[1:]
    try:
        found = from_arrays(X, environment, base)
    except REFUSALS:
        return
    assert not bad
    assert each * 1 >= 20 or len(set(map(str, labels))) < len(labels)
    assert [found.names[e] for e in found.environment] == [str(x).strip() for x in environment]
    np.testing.assert_array_equal(found.X, X)


# Files of questions

TEXT = st.one_of(
    st.sampled_from(["why?", "où, là", 'he said "no"', "=1+1", "東京?", "a\u00a0b", "🙂", "null"]),
    st.text(PLAIN, min_size=1, max_size=12),
).filter(str.strip)
ODD_TEXT = st.one_of(
    TEXT,
    st.sampled_from(
        ["first\nsecond", "a\u2028b", "a\x85b", "a;b", "tab\there", "a\r\nb", "x\x0cy"]
    ),
)


@st.composite
def questions(draw, text):
    found = []
    for k in range(draw(st.integers(1, 3))):
        answers = tuple(draw(st.lists(text, min_size=2, max_size=4, unique_by=str.strip)))
        true = [draw(st.booleans()) for _ in answers]
        true[0], true[-1] = True, False
        best = draw(st.sampled_from([i for i, t in enumerate(true) if t]))
        category = draw(st.sampled_from(["", "law", "a,b", " x "]))
        name = draw(st.sampled_from([f"q{k}", str(k), f"{k},{k}"]))
        found.append(Question(name, draw(text), answers, tuple(true), best, category))
    texts, names = {q.text.strip() for q in found}, {q.id for q in found}
    assume(len(texts) == len(names) == len(found) and not texts & names)
    return found


def same_questions(found, expected):
    """Compare what a file keeps: the best answer is first, and space around a text is dropped."""
    for one, other in zip(found, expected, strict=True):
        assert one.id == other.id
        assert one.text == other.text.strip()
        assert one.category.strip() == other.category.strip()
        assert one.answers[one.best] == other.answers[other.best].strip()
        marked = dict(zip(other.answers, other.true, strict=True))
        assert dict(zip(one.answers, one.true, strict=True)) == {
            answer.strip(): true for answer, true in marked.items()
        }


@given(questions(TEXT.filter(lambda text: ";" not in text)))
def test_questions_that_are_written_are_read_again(folder, asked):
    write_questions(asked, folder / "w.csv")
    same_questions(read_questions(folder / "w.csv"), asked)


@given(questions(TEXT), st.booleans(), st.booleans())
def test_json_lines_are_read_as_they_are(folder, asked, escaped, spaced):
    json_lines(folder / "q.jsonl", asked, escaped, "\n\n" if spaced else "\n")
    same_questions(read_questions(folder / "q.jsonl"), asked)


def json_lines(file, asked, escaped, between):
    rows = []
    for q in asked:
        of = {
            kind: [a for k, (a, t) in enumerate(zip(q.answers, q.true, strict=True))
                   if t is kind and k != q.best]
            for kind in (True, False)
        }  # fmt: skip
        row = {"id": q.id, "question": q.text, "best_answer": q.answers[q.best],
               "correct_answers": of[True], "incorrect_answers": of[False],
               "category": q.category}  # fmt: skip
        rows.append(json.dumps(row, ensure_ascii=escaped))
    file.write_bytes(between.join(rows).encode())


@given(questions(ODD_TEXT))
def test_odd_questions_are_written_and_read_as_they_are_or_refused(folder, asked):
    """Also with ends of lines of any kind in a cell, and separators in answers."""
    try:
        write_questions(asked, folder / "o.csv")
        found = read_questions(folder / "o.csv")
    except REFUSALS:
        return
    same_questions(found, asked)


@given(questions(ODD_TEXT), st.booleans())
def test_odd_json_lines_are_read_as_they_are(folder, asked, escaped):
    """JSON has line ends of its own in strings only where they are escaped."""
    looks = [{visible(text).replace(" ", "") for text in q.answers} for q in asked]
    assume(all(len(q.answers) == len(own) for q, own in zip(asked, looks, strict=True)))
    json_lines(folder / "o.jsonl", asked, escaped, "\n")
    same_questions(read_questions(folder / "o.jsonl"), asked)


@pytest.mark.parametrize("rows", [["why?,why?"], ["1,how?", "2,1"]])
def test_an_id_may_be_the_text_of_a_question(folder, rows):
    header = "id,question,best_answer,incorrect_answers"
    (folder / "i.csv").write_text("\n".join([header, *(f"{row},a,b" for row in rows)]))
    assert [q.id for q in read_questions(folder / "i.csv")] == [row.split(",")[0] for row in rows]


@pytest.mark.parametrize("name", ["t.csv", "q.csv"])
def test_a_quote_that_is_never_closed_is_refused_by_name(folder, name):
    (folder / name).write_text('environment,x\nany,"1\n' + "any,2\n" * 30_000)
    with pytest.raises(ValueError, match=re.escape(name)):
        read_environments(folder / name, "any") if name == "t.csv" else read_questions(
            folder / name
        )


CELL = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.floats(), st.just("x"),
                 st.lists(st.one_of(st.none(), st.just("y"), st.integers(0, 2)), max_size=2),
                 st.dictionaries(st.just("k"), st.just(1), max_size=1))  # fmt: skip


ROWS = st.dictionaries(
    st.sampled_from(["question", "best_answer", "incorrect_answers", "correct_answers", "id"]),
    CELL,
)


@given(ROWS)
def test_json_of_other_types_is_refused_by_name_or_read(folder, row):
    (folder / "j.jsonl").write_text(json.dumps(row), encoding="utf-8")
    try:
        found = read_questions(folder / "j.jsonl")
    except REFUSALS as error:
        assert "j.jsonl" in str(error)
        return
    assert all(isinstance(text, str) and text for q in found for text in (q.text, *q.answers))


@pytest.mark.parametrize("key", ["question", "best_answer", "incorrect_answers"])
@pytest.mark.parametrize("value", [None, float("nan"), True, {"k": 1}])
def test_json_that_is_no_text_is_refused(folder, key, value):
    row = {"question": "why?", "best_answer": "because", "incorrect_answers": ["no"]}
    if key == "incorrect_answers":
        value = [value]
    (folder / "n.jsonl").write_text(json.dumps(row | {key: value}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"n\.jsonl.*row 1"):
        read_questions(folder / "n.jsonl")


def test_an_id_of_zero_is_kept(folder):
    row = {"id": 0, "question": "why?", "best_answer": "because", "incorrect_answers": ["no"]}
    (folder / "z.jsonl").write_text(json.dumps(row), encoding="utf-8")
    assert read_questions(folder / "z.jsonl")[0].id == "0"


TASK = st.fixed_dictionaries({
    "question": st.one_of(st.just("why?"), CELL),
    "mc1_targets": st.dictionaries(st.sampled_from("abc"), st.sampled_from([0, 0, 1])),
    "mc2_targets": st.dictionaries(st.sampled_from("abc"), st.sampled_from([0, 0, 1])),
})  # fmt: skip


@given(TASK)
def test_tasks_are_read_as_they_are_or_refused(folder, row):
    (folder / "t.json").write_text(json.dumps([row]), encoding="utf-8")
    one, both = row["mc1_targets"], row["mc2_targets"]
    best = [choice for choice, right in one.items() if right]
    try:
        [found] = read_questions(folder / "t.json")
    except REFUSALS:
        return
    assert len(best) == 1
    assert found.answers[found.best] == best[0]
    assert dict(zip(found.answers, found.true, strict=True)) == both
    assert {c for c, right in one.items() if not right} == {c for c, t in both.items() if not t}


@pytest.mark.parametrize("text", [None, "", ["why?"]])
def test_a_task_whose_question_is_no_text_is_refused(folder, text):
    targets = {"a": 1, "b": 0}
    row = {"question": text, "mc1_targets": targets, "mc2_targets": targets}
    (folder / "u.json").write_text(json.dumps([row]), encoding="utf-8")
    with pytest.raises(ValueError, match=r"u\.json, row 1"):
        read_questions(folder / "u.json")


# Designs of environments

QUARTERS = st.integers(-6, 6).map(lambda k: k / 4)


@st.composite
def designs(draw):
    n = draw(st.integers(1, 4))
    some = st.lists(st.integers(0, n - 1), min_size=1, max_size=n, unique=True)
    subsets = draw(st.lists(some, min_size=1, max_size=6))
    assume({i for s in subsets for i in s} == set(range(max(max(s) for s in subsets) + 1)))
    valuations = [[draw(QUARTERS) for _ in subset] for subset in subsets]
    return subsets, valuations, draw(st.sampled_from([0.25, 1.0, 4.0, 0.015625]))


def rank(rows):
    """Return the rank of a matrix of fractions by elimination."""
    rows, found = [list(row) for row in rows], 0
    for k in range(len(rows[0]) if rows else 0):
        pivot = next((r for r in range(found, len(rows)) if rows[r][k]), None)
        if pivot is None:
            continue
        rows[found], rows[pivot] = rows[pivot], rows[found]
        for r in range(found + 1, len(rows)):
            factor = rows[r][k] / rows[found][k]
            rows[r] = [a - factor * b for a, b in zip(rows[r], rows[found], strict=True)]
        found += 1
    return found


def matrices(subsets, valuations):
    n = max(i for s in subsets for i in s) + 1
    M = [[Fraction(int(i in s)) for i in range(n)] for s in subsets]
    B = [[Fraction(dict(zip(s, b, strict=True)).get(i, 0)) for i in range(n)]
         for s, b in zip(subsets, valuations, strict=True)]  # fmt: skip
    return M, B, n


@given(designs())
def test_designs_satisfy_what_exact_fractions_say(design):
    subsets, valuations, _ = design
    M, B, n = matrices(subsets, valuations)
    report = EnvironmentDesign(*design).check()
    assert report.rank == rank(M)
    for i in range(n):
        others = [row[:i] + row[i + 1 :] for row in M]
        independent = rank(M) > rank(others)
        # v with vM = 0 sees column i of B unless that is a combination of the columns of M.
        seen = rank([[*row, b[i]] for row, b in zip(M, B, strict=True)]) > rank(M)
        assert report.assumption4[i] == (independent and seen), (i, independent, seen)
        for j in range(n):
            without = any(i in s and j not in s for s in subsets)
            assert report.assumption5[i, j] == (i == j or without)
    both = [m + b for m, b in zip(M, B, strict=True)]
    assert report.theorem2 == (rank(both) == 2 * n)
    lemma1 = any(
        all(rank([row for k, row in enumerate(some) if k != left]) == n for left in range(n + 1))
        for some in itertools.combinations(M, n + 1)
    )
    assert report.lemma1 == lemma1
    pairs = itertools.combinations(range(len(subsets)), 2)
    assert report.repeated == tuple((e, d) for e, d in pairs if both[e] == both[d])
    assert report.satisfied == (report.assumption4.all() and report.assumption5.all())
    assert (str(report).find("Theorem 1 covers") >= 0) == report.satisfied


@given(designs(), SEEDS)
def test_verdicts_do_not_change_with_the_names_and_units_of_atoms(design, seed):
    """Order of environments and atoms, a shift of each atom's zero, and its sign."""
    subsets, valuations, variance = design
    rng = np.random.default_rng(seed)
    n = max(i for s in subsets for i in s) + 1
    names, signs, shifts = rng.permutation(n), rng.choice([-1, 1], n), rng.integers(-3, 4, n) / 4
    order = rng.permutation(len(subsets))
    moved = EnvironmentDesign(
        [[int(names[i]) for i in subsets[e]] for e in order],
        [[float(signs[i] * b + shifts[i]) for i, b in zip(subsets[e], valuations[e], strict=True)]
         for e in order],
        variance,
    )  # fmt: skip
    one, other = EnvironmentDesign(*design).check(), moved.check()
    assert [other.identified[names[i]] for i in range(n)] == list(one.identified)
    assert [other.assumption4[names[i]] for i in range(n)] == one.assumption4.tolist()
    if one.satisfied:
        assert set(one.identified) <= {"always", "full support"}


MODERATE = st.floats(-1e100, 1e100).filter(lambda x: x == 0 or abs(x) > 1e-100)
ANY_NUMBER = st.one_of(
    MODERATE,
    st.sampled_from([np.nan, np.inf]),
    st.integers(-2, 3),
    st.none(),
    st.text(max_size=2),
    QUARTERS,
)


@given(
    st.lists(st.one_of(st.lists(st.one_of(st.integers(-1, 3), ANY_NUMBER), max_size=3),
                       st.integers(0, 2), st.none()), max_size=3),
    st.lists(st.one_of(st.lists(ANY_NUMBER, max_size=3), st.none(), st.just(0.5)), max_size=3),
    ANY_NUMBER,
)  # fmt: skip
def test_designs_of_anything_are_refused_or_kept_as_they_are(subsets, valuations, variance):
    try:
        design = EnvironmentDesign(subsets, valuations, variance)
    except REFUSALS:
        return
    assert design.subsets == tuple(tuple(s) for s in subsets)
    assert design.valuations == tuple(tuple(map(float, b)) for b in valuations)
    assert 0 < design.variance == variance < np.inf
    event("kept")
    try:
        report = design.check()
    except REFUSALS as error:  # numbers beyond what M and B can hold
        event("out of range")
        assert "M" in str(error) or "B" in str(error) or "variance" in str(error)
        return
    M, _, n = matrices(subsets, valuations)
    assert report.rank == rank(M)
    assert report.M.shape == (len(subsets), n)


# Arrays that are scored


@st.composite
def arrays_to_score(draw):
    """Return true (samples, n) and learned (samples, k), some columns tied, constant or copies."""
    rng = np.random.default_rng(draw(SEEDS))
    samples, n, k = draw(st.integers(6, 40)), draw(st.integers(1, 4)), draw(st.integers(1, 4))
    true = rng.normal(size=(samples, n))
    learned = np.resize(true, (samples, k)) * draw(st.sampled_from([0.0, 1.0]))
    learned = learned + rng.normal(size=(samples, k)) * draw(st.sampled_from([0.1, 1.0]))
    for X in (true, learned):
        np.multiply(X, 10.0 ** draw(st.integers(-8, 8)), out=X)
        np.add(X, draw(st.sampled_from([0.0, 1.0, -300.0])) * np.abs(X).max(), out=X)
        kind = draw(st.sampled_from(["", "", "ties", "constant", "copy"]))
        if kind == "ties":
            X[:, 0] = rng.integers(0, 3, samples)
        if kind == "constant":
            X[:, -1] = draw(st.sampled_from([0.0, 0.1, -7e9]))
        if kind == "copy":
            X[:, -1] = X[:, 0]
    return true, learned


@given(arrays_to_score(), st.sampled_from(["pearson", "spearman"]))
def test_mcc_is_that_of_the_best_matching_by_scipy(arrays, method):
    true, learned = arrays
    ranked = [rankdata(X, axis=0) if method == "spearman" else X for X in arrays]
    table = np.zeros((true.shape[1], learned.shape[1]))
    for i, j in np.ndindex(table.shape):
        if np.ptp(true[:, i]) > 0 and np.ptp(learned[:, j]) > 0:
            table[i, j] = abs(pearsonr(ranked[0][:, i], ranked[1][:, j]).statistic)
    wide = table if len(table) <= table.shape[1] else table.T
    best = max(
        np.mean([wide[i, j] for i, j in enumerate(choice)])
        for choice in itertools.permutations(range(wide.shape[1]), len(wide))
    )
    assert mcc(true, learned, method) == pytest.approx(best, abs=1e-9)


@given(arrays_to_score())
def test_r2_is_that_of_scikit_learn(arrays):
    true, learned = arrays
    centred = (learned - learned.mean(axis=0)) / (
        learned.std(axis=0) + (np.ptp(learned, axis=0) == 0)
    )
    fitted = LinearRegression().fit(centred, true).predict(centred).reshape(true.shape)
    varies = np.ptp(true, axis=0) > 0
    expected = np.ones(true.shape[1])
    for i in np.flatnonzero(varies):
        expected[i] = r2_score(true[:, i], fitted[:, i])
    assert r2(true, learned) == pytest.approx(expected.mean(), abs=1e-8)


SCORED = st.one_of(
    st.lists(st.tuples(MODERATE), min_size=4, max_size=4),
    st.lists(st.tuples(QUARTERS, QUARTERS), min_size=4, max_size=4),
    st.lists(st.tuples(QUARTERS, MODERATE), min_size=4, max_size=4),
    st.lists(st.lists(ANY_NUMBER, min_size=1, max_size=2), max_size=4),
    st.lists(ANY_NUMBER, max_size=4),
    ANY_NUMBER,
)


@given(SCORED, SCORED)
def test_scores_of_anything_are_numbers_from_zero_to_one_or_refused(true, learned):
    for score in (mcc, r2):
        try:
            found = score(true, learned)
        except REFUSALS as error:
            assert "true" in str(error) or "learned" in str(error)
            continue
        event("scored")
        assert -1e-9 <= found <= 1 + 1e-9


@pytest.mark.parametrize(
    ("score", "size"),
    [
        *((mcc, size) for size in (1e308, 8e307, 1e-247)),
        *((r2, size) for size in (1e308, 1e151, 1e149, 1e-149, 1e-247, 5e-324)),
    ],
)
def test_ranges_that_no_float_holds_are_refused_by_name_or_scored(score, size):
    values = np.array([[-size], [size], [0.0]])
    try:
        assert score(values, values) == pytest.approx(1)
    except REFUSALS as error:
        assert "true" in str(error)


# Checkpoints of studies


def plan_of(count):
    def as_they_are(runs):
        return runs

    as_they_are.__module__ = "conceptnb.results.summarise"  # where the package would have it
    runs = [[{"seed": k, "x": 1.5 * k}, {"seed": k, "x": float(k * k)}] for k in range(count)]
    tasks = [Task(summary, {"runs": r, "by": ["seed"], "columns": ["x"]}) for r in runs]
    return Plan("demo", tasks, as_they_are, range(count))


def content(path):
    return json.dumps(without_times(results.read(path)))


class Checkpoints(RuleBasedStateMachine):
    """A study that is killed, extended, damaged: in the end its rows are right, or it says why."""

    def __init__(self):
        super().__init__()
        self.temporary = tempfile.TemporaryDirectory()
        self.out = Path(self.temporary.name) / "demo.json"
        self.parts = self.out.with_name("demo.json.parts")
        self.damaged = set()

    def teardown(self):
        self.temporary.cleanup()

    def files(self):
        return sorted(self.parts.glob("*.json"))

    @rule(count=st.integers(1, 4), after=st.integers(0, 4), during=st.booleans())
    def killed(self, count, after, during):
        """A child begins, and is killed after so many tasks, perhaps while it writes one."""
        child = os.fork()
        if child == 0:
            write, written = runner.write_text, itertools.count()

            def deadly(path, text):
                if next(written) == after:
                    if during:
                        path.parent.mkdir(parents=True, exist_ok=True)
                        path.with_name(f".{path.name}.half").write_text(text[: len(text) // 2])
                    os.kill(os.getpid(), signal.SIGKILL)
                write(path, text)

            try:
                runner.write_text = deadly
                runner.run(plan_of(count), "x", self.out, self.parts)
            finally:
                os._exit(0)
        os.waitpid(child, 0)

    @precondition(lambda self: self.files())
    @rule(which=st.integers(0, 9), how=st.sampled_from(
        ["cut", "empty", "bytes", "list", "rows", "null", "number", "swapped", "folder"]),
        where=st.floats(0.0, 0.99))  # fmt: skip
    def damage(self, which, how, where):
        file = self.files()[which % len(self.files())]
        if file.is_dir():
            return
        text = file.read_text(encoding="utf-8", errors="replace")
        other = self.files()[(which + 1) % len(self.files())]
        if how == "swapped" and (other == file or not other.is_file()):
            return
        new = {
            "cut": text[: int(where * len(text))].encode(),
            "empty": b"",
            "bytes": b"\xff\xfe\x00" + text.encode()[3:],
            "list": b"[]",
            "rows": b'{"rows": "abc", "cpu_seconds": 1}',
            "null": b'{"rows": [null], "cpu_seconds": 1}',
            "number": re.sub(r"(x_mean\": )\d", r"\g<1>7", text).encode(),
            "swapped": other.read_bytes() if other.is_file() else b"",
            "folder": b"",
        }[how]
        if new == file.read_bytes() and how != "folder":
            return
        self.damaged.add(file.name)
        if how == "folder":
            file.unlink()
            file.mkdir()
        else:
            file.write_bytes(new)

    @precondition(lambda self: self.files())
    @rule(which=st.integers(0, 9))
    def deleted(self, which):
        file = self.files()[which % len(self.files())]
        if file.is_file():
            file.unlink()
            self.damaged.discard(file.name)

    @rule(count=st.integers(1, 4))
    def finished(self, count):
        plan = plan_of(count)
        needed = {f"{task.key()}.json" for task in plan.tasks}
        try:
            runner.run(plan, "x", self.out, self.parts)
        except (*REFUSALS, OSError) as error:
            event("refused")
            bad = needed & self.damaged
            assert any(name in str(error) for name in bad), (str(error), bad)
            return
        event("right")
        rows = [(row["seed"], row["x_mean"]) for row in results.read(self.out).rows]
        assert rows == [(k, (1.5 * k + k * k) / 2) for k in range(count)]


TestCheckpoints = Checkpoints.TestCase
TestCheckpoints.settings = settings(
    max_examples=max(settings.default.max_examples // 40, 10), stateful_step_count=10
)
