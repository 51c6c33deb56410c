"""The scorecard of the results page, a line per experiment, and the list of the files behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import metadata

import numpy as np
import pandas as pd

from conceptnb import results
from conceptnb.common.intervals import interval_over_models
from conceptnb.results import paper
from conceptnb.results.runner import Row
from conceptnb.results.show import Table
from conceptnb.results.summarise import grouped
from conceptnb.steering.techniques import MASS_MEAN, MATRIX
from conceptnb.studies import clip
from conceptnb.tables import steering_analysis, steering_order
from conceptnb.tables.steering_over_models import difference_columns, model_gains

_SMALL = 8
"""Latent dimensions of Table 1, at most; Table 7 has further rows."""
_KL_REAL, _KL_TOY = 0.2, 0.1
"""Nats per token at which techniques are compared on the real model and on small ones."""
_TUNED = 3
"""Small models per corpus on which the training recipe was settled; later seeds are fresh."""


def scorecard() -> Table:
    """Return every experiment of the paper with its printed number, ours, and what ours is.

    The status is "reproduced", "stand-in", "stand-in, null" (the 95 % interval contains 0) or
    "not run". Covers Tables 1 to 7 and Figure 2.
    """
    return Table([*_synthetic(), *_embedded(), *_real_model(), *_toy_corpora()])


def files() -> pd.DataFrame:
    """Return a row per stored file of results: a link, its command, its size and its state."""
    links = dict(url.split(", ") for url in metadata("conceptnb").get_all("Project-URL") or ())
    rows = []
    for name in results.names():
        stored = results.load(name)
        link = f"{links['Repository']}/blob/main/results/{name}.json"
        rows.append(
            {
                "file": f'<a href="{link}">{name}.json</a>',
                "command": f"<code>{stored.command}</code>",
                "rows": f"{len(stored.rows):,}",
                "seeds": str(len(stored.seeds)),
                "CPU seconds": f"{stored.cpu_seconds:,.0f}",
                "state": stored.state()[0],
            }
        )
    return pd.DataFrame(rows)


def eta2(column: Sequence[Sequence[float]]) -> float:
    """Return η² of equally frequent values from [mean, deviation] of each, as Tables 2-4 print."""
    means, deviations = np.array(column).T
    return float(means.var() / (means.var() + (deviations**2).mean()))


def _line(
    experiment: str, run_with: str, score: str, printed: str, ours: str, seeds: object, status: str
) -> Row:
    return {
        "experiment": experiment,
        "run with": run_with,
        "score": score,
        "paper": printed,
        "ours": ours,
        "seeds": str(seeds),
        "status": status,
    }


def _synthetic() -> Iterator[Row]:
    """Tables 1 and 7: MCC, mean over settings, ± its deviation over seeds."""
    printed = paper.as_printed("table1_table7").rows
    estimators = {"authors' protocol": "synthetic_faithful", "our recipe": "synthetic_best"}
    for experiment, wanted in {
        "Table 1, linear": lambda r: r["mixing"] == "linear" and r["dz"] <= _SMALL,
        "Table 1, nonlinear": lambda r: r["mixing"] != "linear" and r["dz"] <= _SMALL,
        "Table 7, beyond Table 1": lambda r: r["dz"] > _SMALL,
    }.items():
        theirs = np.mean([row["MCC"][0] for row in printed if wanted(row)])
        for name, file in estimators.items():
            runs = [run for run in results.load(file).runs if wanted(run)]
            seeds = grouped(runs, ["seed"]).values()
            ours = [np.mean([run["mcc"] for run in of_seed]) for of_seed in seeds]
            shown = f"{np.mean(ours):.2f} ± {np.std(ours):.2f}"
            shown = shown.replace("± 0.00", "± <\N{NO-BREAK SPACE}0.01")
            yield _line(experiment, name, "MCC", f"{theirs:.2f}", shown, len(ours), "reproduced")


def _embedded() -> Iterator[Row]:
    """Tables 2 to 5 and Figure 2: means over factors and models."""
    yield from _tables_2_to_5("clip", "small CLIP models, drawn pictures", "stand-in")
    real = "OpenAI's CLIP, published 3D Shapes"
    if clip.OF_THE_PAPER in results.names():
        yield from _tables_2_to_5(clip.OF_THE_PAPER, real, "reproduced")
    else:
        yield _line("Tables 2 to 5", real, "", "", "", "", "not run")


def _tables_2_to_5(name: str, run_with: str, status: str) -> Iterator[Row]:
    rows = results.load(name).rows
    trained = [row for row in rows if "untrained" not in str(row)]
    theirs = np.mean([eta2(c) for models in clip.paper_columns().values() for c in models.values()])
    ours = np.mean([row["eta2_paper"] for row in trained if row["table"] == "separation"])
    yield _line(
        "Tables 2 to 4, Figure 2", run_with, "η²", f"{theirs:.2f}", f"{ours:.2f}", 1, status
    )
    theirs = np.mean(np.abs([*paper.printed("table5_correlation_ViT_RN").values()]))
    agreements = [row["correlation_paper"] for row in trained if row["table"] == "agreement"]
    ours, score = np.mean(np.abs(agreements)), "absolute correlation"
    yield _line("Table 5", run_with, score, f"{theirs:.2f}", f"{ours:.2f}", 1, status)


def _real_model() -> Iterator[Row]:
    """Table 6 on a real model: differences of MC1 with intervals over questions."""
    stored = results.load("steering_real")
    [(model, runs)] = steering_analysis.by_corpus(stored.runs).items()
    printed = _printed_mc1()
    for score, pair in {
        "MC1, matrix minus mass mean": (MATRIX, MASS_MEAN),
        "MC1, mass mean minus unsteered": (MASS_MEAN, "baseline"),
    }.items():
        [row] = steering_order.compared(runs, [pair], kl=_KL_REAL).to_dict("records")
        yield _line(
            "Table 6, a real model",
            f"{model}, {len(runs[0]['tested'])} questions",
            score,
            f"{printed[pair[0]] - printed[pair[1]]:+.3f}",
            f"{row['MC1']} {row['interval']}",
            len(stored.seeds),
            _stand_in(row),
        )


def _toy_corpora() -> Iterator[Row]:
    """Table 6 on small models that were trained after all choices: intervals over both."""
    fresh = [r for r in results.load("steering_fresh").runs if r["model_seed"] >= _TUNED]
    runs, printed = steering_analysis.by_corpus(fresh), _printed_mc1()
    for corpus in steering_analysis.by_corpus(results.load("steering").runs):
        gains = model_gains(runs[corpus], MATRIX, MASS_MEAN, kl=_KL_TOY)
        row = difference_columns(*interval_over_models(gains))
        yield _line(
            "Table 6, toy corpora",
            f"{len(gains)} fresh small models on {corpus}",
            "MC1, matrix minus mass mean",
            f"{printed[MATRIX] - printed[MASS_MEAN]:+.3f}",
            f"{row['MC1']} {row['interval']}",
            len(gains),
            _stand_in(row),
        )
    yield _line("Table 6", "LLaMA-7B, all of TruthfulQA", "", "", "", "", "not run")


def _printed_mc1() -> dict[str, float]:
    """Return MC1 of Table 6 by the names that techniques have here."""
    rows, order = paper.as_printed("table6").rows, steering_order.ORDER
    return {ours: row["mc_accuracy"][0] for ours, row in zip(order, rows, strict=True)}


def _stand_in(difference: Row) -> str:
    return "stand-in" if difference["excludes 0"] == "yes" else "stand-in, null"
