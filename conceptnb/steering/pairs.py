"""Pairs of texts, or of chats, that differ in what a vector is to carry: the record and its files.

The first of a pair shows what is wanted, the second what is not; else they should be alike.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from conceptnb.common.table_files import read_table, read_text, require_columns

Text = str | Sequence[Mapping[str, str]]
"""A text, or a chat: messages with ``role`` and ``content``."""
Pair = tuple[Text, Text]
"""What is wanted, and what is not."""

_SIDES = ("positive", "negative")


def read_pairs(path: str | Path) -> list[Pair]:
    """Read pairs from CSV or JSON lines (``.jsonl``) with the columns ``positive``, ``negative``.

    With a column ``prompt``, too, each pair is two chats: the prompt is what the user says, and the
    two texts are replies. In JSON lines a side may also be a chat, a list of messages.

    Returns
    -------
    list of (text, text)

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file; a column is missing, a text empty or no text; both of a pair are
        the same, or a pair is there twice. Names file and row.
    """
    file = Path(path)
    rows = _json_lines(file) if file.suffix.lower() == ".jsonl" else _csv_rows(file)
    pairs, seen = [], dict[str, int]()
    for number, row in rows:
        where = f"{file}, row {number}"
        one, other = (_side(row, side, where) for side in _SIDES)
        if one == other:
            raise ValueError(f"{where}: positive and negative are the same: what should differ?")
        if (key := json.dumps([one, other])) in seen:
            raise ValueError(f"{where}: the pair is in row {seen[key]}, too")
        seen[key] = number
        pairs.append((one, other))
    return pairs


def _csv_rows(file: Path) -> list[tuple[int, dict[str, Any]]]:
    table = read_table(file)
    require_columns(table, _SIDES, file)
    records = table.to_dict(orient="records")
    return [
        (int(k) + 2, {str(name): cell for name, cell in row.items()})
        for k, row in zip(table.index, records, strict=True)
    ]


def _json_lines(file: Path) -> list[tuple[int, dict[str, Any]]]:
    if not file.is_file():
        raise FileNotFoundError(f"{file} is no file: give the path of a list of pairs")
    rows = []
    for number, line in enumerate(read_text(file).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{file}, row {number}: no JSON ({error})") from None
        if not isinstance(row, dict) or not set(_SIDES) <= set(row):
            raise ValueError(f"{file}, row {number} lacks the keys {list(_SIDES)}")
        rows.append((number, row))
    if not rows:
        raise ValueError(f"{file} is empty: write one JSON object per line, with {list(_SIDES)}")
    return rows


def _side(row: Mapping[str, Any], side: str, where: str) -> Text:
    given, prompt = row[side], row.get("prompt")
    if _is_chat(given):
        return given
    if not isinstance(given, str) or not given.strip():
        raise ValueError(f"{where}: {side} is {given!r}; give a text, or a list of messages")
    if prompt is None:
        return given
    if not isinstance(prompt, str) or not prompt.strip():
        raise ValueError(f"{where}: prompt is {prompt!r}; give a text, or no such column")
    return [{"role": "user", "content": prompt}, {"role": "assistant", "content": given}]


def _is_chat(given: Any) -> bool:
    return (
        isinstance(given, Sequence)
        and not isinstance(given, str)
        and len(given) > 0
        and all(isinstance(said, Mapping) and {"role", "content"} <= set(said) for said in given)
    )


def encode_text(tokenizer: PreTrainedTokenizerBase, text: Text) -> list[int]:
    """Return a text or chat as tokens that end where it ends: no closing token, no turn's end.

    A chat whose last message is the assistant's is left open behind it; after any other the
    template begins the assistant's turn.

    Raises
    ------
    ValueError
        If it is neither a text nor a chat, or the tokenizer has no chat template.
    """
    if isinstance(text, str):
        ids = list(tokenizer(text)["input_ids"])
        closed = len(ids) > 1 and ids[-1] in (tokenizer.eos_token_id, tokenizer.sep_token_id)
        return ids[:-1] if closed and not text.endswith(str(tokenizer.decode(ids[-1:]))) else ids
    if not _is_chat(text):
        raise ValueError(f"pairs holds {text!r}; give texts, or lists of messages")
    if not tokenizer.chat_template:
        raise ValueError("tokenizer has no chat template: give pairs of texts, not of chats")
    answered = text[-1]["role"] == "assistant"
    found: Any = tokenizer.apply_chat_template(  # typed as text, whatever is asked for
        [dict(said) for said in text],
        add_generation_prompt=not answered,
        continue_final_message=answered,
        return_dict=True,
    )
    return list(found["input_ids"])


def encode_pairs(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, pairs: Sequence[Pair]
) -> tuple[list[list[int]], list[list[int]]]:
    """Return the tokens of what is wanted and of what is not, pair by pair.

    Raises
    ------
    ValueError
        If there is no pair, an entry is none, both sides are the same tokens, or a text is empty
        or longer than the model reads; counts pairs from 1.
    """
    if not len(pairs):
        raise ValueError("pairs is empty: give at least one (wanted, not wanted)")
    most = getattr(model.config.get_text_config(), "max_position_embeddings", None) or 1 << 62
    sides: tuple[list[list[int]], list[list[int]]] = ([], [])
    for number, pair in enumerate(pairs, start=1):
        if isinstance(pair, str) or len(pair) != 2:
            raise ValueError(f"pair {number} is {pair!r}; give (wanted, not wanted)")
        one, other = (encode_text(tokenizer, text) for text in pair)
        if one == other:
            raise ValueError(f"pair {number}: both sides are the same tokens: {pair[0]!r}")
        if not one or not other or max(len(one), len(other)) > most:
            raise ValueError(
                f"pair {number} has {len(one)} and {len(other)} tokens, and this "
                f"{type(model).__name__} reads 1 to {most}: shorten it"
            )
        sides[0].append(one)
        sides[1].append(other)
    return sides
