"""The register of claims: headline sentences of the book, each beside its stored number.

``claims.toml`` says which runs of which table a sentence is about, and where the 95 % interval has
to lie. Intervals: t over runs or over differences paired by seed, Clopper-Pearson for shares, and
at equal KL over trained models and questions.
"""

import html
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
from scipy.stats import binomtest, t

from conceptnb import results
from conceptnb.common.intervals import interval_over_models
from conceptnb.results.runner import Row
from conceptnb.results.show import Table
from conceptnb.results.summarise import grouped
from conceptnb.tables.steering_over_models import model_gains
from conceptnb.tables.synthetic_report import row_of_paper

_Load = Callable[[str], results.Result]
WHEN = ("Before the runs", "Partly after seeing", "After seeing", "Not recorded")
"""When choices were fixed, as the entries say."""
_HAS_TO = {"effect": "exclude a value", "no effect shown": "include a value"}
_MOST_UNITS = 40  # that are left out one by one
_Number = tuple[float, float, float, str]
"""A mean, the ends of its interval, and what that is over."""


@dataclass(frozen=True)
class _Claim:
    """An entry of ``claims.toml``, and what the table says in each group of runs."""

    entry: Row
    numbers: dict[str, _Number]
    command: str
    without: dict[str, bool]
    """Whether the sentence is still supported without one seed, one trained model or one split."""

    def margin(self, group: str) -> float:
        """Return how far the interval of a group is inside its bounds, which has to be positive."""
        _, low, high, _ = self.numbers[group]
        above, below, inside = (self.entry.get(k, np.nan) for k in ("above", "below", "includes"))
        return float(np.nanmin([low - above, below - high, inside - low, high - inside]))

    @property
    def holds(self) -> bool:
        return all(self.margin(group) > 0 for group in self.numbers)

    @property
    def kind(self) -> str:
        """Whether the interval has to exclude a value, or to include one."""
        return "effect" if {"above", "below"} & set(self.entry) else "no effect shown"

    @property
    def fixed(self) -> str:
        """When the choices were fixed: the first words of the entry's line."""
        return next(when for when in WHEN if self.entry["choices"].startswith(when))

    def _repr_html_(self) -> str:
        entry, least = self.entry, min(self.numbers, key=self.margin)
        mean, low, high, over = self.numbers[least]
        cases = f" for {least}, the least clear of {len(self.numbers)} cases" if least else ""
        fails = {"above": "reaches down to", "below": "reaches up to", "includes": "excludes"}
        bounds = [f"{text} {entry[k]:g}" for k, text in fails.items() if k in entry]
        lines = {
            "Number" if self.holds else "Not supported": f"{entry['number']}: {mean:.3g} "
            f"[{low:.3g}, {high:.3g}]{cases}, over {over}.",
            "Refuted by": f"an interval that {' or '.join(bounds)}. {entry['refuted']}",
            "Choices": entry["choices"],
        }
        if self.without:
            lost = [name for name, holds in self.without.items() if not holds]
            without = f"not supported without any one of {', '.join(lost)}."
            lines["With one of them left out"] = without if lost else "supported every time."
        number, *rest = (f"<b>{k}:</b> {html.escape(text)}" for k, text in lines.items())
        return (
            f"<details class='claim'><summary><em>{html.escape(entry['sentence'])}</em><br>"
            f"{number}</summary><p>{'<br>'.join(rest)}</p>"
            f"<p class='provenance'><code>{html.escape(self.command)}</code></p></details>"
        )


def registered_claims(
    page: str = "", load: _Load = results.load, together: int = 1
) -> list[_Claim]:
    """Return the claims of a page, or of all, with what the tables that `load` returns say.

    With `together`, so many intervals hold at once with 95 % (Bonferroni).
    """
    declared = tomllib.loads((files("conceptnb.tables") / "claims.toml").read_text("utf-8"))[
        "claim"
    ]
    chosen = [entry for entry in declared if page in ("", entry["page"])]
    return [_measured(entry, load, together) for entry in chosen]


def overview(load: _Load = results.load) -> Table:
    """Count the register by what intervals have to show, and by when choices were fixed.

    The last column counts intervals that still support their sentence if all intervals of the
    register are to hold at once with 95 % (Bonferroni): those of effects are wider than alone, and
    it is left empty where an interval has to include a value, which a wider one does more easily.
    """
    alone = registered_claims(load=load)
    wider = registered_claims(load=load, together=len(alone))
    rows: list[Row] = []
    for kind in ("effect", "no effect shown"):
        pairs = [pair for pair in zip(alone, wider, strict=True) if pair[0].kind == kind]
        row: Row = {"the interval has to": _HAS_TO[kind], "numbers": str(len(pairs))}
        row |= {when.lower(): str(sum(a.fixed == when for a, _ in pairs)) for when in WHEN}
        row["supported"] = str(sum(a.holds for a, _ in pairs))
        held = str(sum(w.holds for _, w in pairs))
        rows.append(row | {"supported all together": held if kind == "effect" else ""})
    return Table(rows)


def _measured(entry: Row, load: _Load, together: int = 1) -> _Claim:
    by, measure = entry.get("by", []), _at_equal_kl if "kl" in entry else _over_runs
    groups = grouped(_runs(entry, load), by)
    names = {key: ", ".join(map("{} {}".format, by, key)) for key in groups}

    def claim(groups: dict[tuple, list[Row]], without: dict[str, bool]) -> _Claim:
        numbers = {names[key]: measure(rows, entry, load, together) for key, rows in groups.items()}
        return _Claim(entry, numbers, load(entry["table"]).command, without)

    runs = [row for rows in groups.values() for row in rows]
    several = "kl" in entry and len({row["model_seed"] for row in runs}) > 1
    unit = "model_seed" if several else "seed"
    name = "model seed" if several else "split" if "kl" in entry else "seed"
    units = sorted({row[unit] for row in runs if unit in row})
    without = {}
    for one in units if 1 < len(units) <= _MOST_UNITS else ():
        rest = {key: [row for row in rows if row[unit] != one] for key, rows in groups.items()}
        whole = {key: rows for key, rows in rest.items() if len(rows) > 1}
        without[f"{name} {one}"] = claim(whole, {}).holds
    return claim(groups, without)


def _runs(entry: Row, load: _Load) -> list[Row]:
    where, runs = entry.get("where", {}), load(entry["table"]).runs
    found = [run for run in runs if all(run.get(k) in values for k, values in where.items())]
    if not found:
        raise ValueError(f"where={entry.get('where')} selects no run of {entry['table']}.json")
    return found


def _over_runs(rows: Sequence[Row], entry: Row, load: _Load, together: int = 1) -> _Number:
    n, minus, column, error = len(rows), entry.get("minus"), entry["column"], 0.0
    values, free = np.array([row[column] for row in rows]), n - 1
    if "exceeds" in entry:
        values = values > entry["exceeds"]
    if values.dtype == bool:
        ends = binomtest(int(values.sum()), n).proportion_ci(1 - 0.05 / together)
        return values.mean(), ends.low, ends.high, f"{n} {entry['unit']}"
    if minus == "paper":  # whose means and deviations are over five seeds
        paper = np.array([row_of_paper(row)[{"r2": 4, "mcc": 5}[column]] for row in rows])
        values, printed, free = values - paper[:, 0], np.unique(paper, axis=0), 4
        error = np.sqrt((printed[:, 1] ** 2).mean() / 4 / len(printed))
    elif minus:
        other, key = {**entry, **minus}, ["seed", *entry.get("by", []), *entry.get("pair", [])]
        pairs = grouped(_runs(other, load), key)
        matched = [pairs[tuple(row[k] for k in key)] for row in rows]
        if not all(len(runs) == 1 for runs in matched):
            raise ValueError(f"{key} do not pair single runs: name more columns in `pair`")
        values = values - [run[other["column"]] for (run,) in matched]
    elif "splits" in entry:  # of one run: mean and deviation
        n, free = entry["splits"], entry["splits"] - 1
        values, error = values[:, 0], values[0, 1] / np.sqrt(free)
    if len(values) > 1:
        error = np.hypot(error, values.std(ddof=1) / np.sqrt(n))
    mean, half = values.mean(), t.ppf(1 - 0.025 / together, free) * error if error else 0.0
    return mean, mean - half, mean + half, f"{n} {entry['unit']}"


def _at_equal_kl(rows: Sequence[Row], entry: Row, _: _Load, together: int = 1) -> _Number:
    """Return MC1 minus that of another method, corrected for so many methods as were ``tried``."""
    chosen = [row for row in rows if row["chosen"]]
    gains = model_gains(chosen, entry["method"], entry["against"], entry["kl"])
    found = interval_over_models(gains, entry["tried"] * together)
    models = "one model" if len(gains) == 1 else f"{len(gains)} models"
    return *found, f"{models} and {gains.shape[1]} questions"
