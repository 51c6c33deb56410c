"""The tables of the results page: the paper's numbers and ours in neighbouring columns."""

from __future__ import annotations

from typing import Any

from conceptnb import results
from conceptnb.embeddings.clip.loading import PAPER_ENCODERS
from conceptnb.results import paper
from conceptnb.results.runner import Row
from conceptnb.results.show import Table
from conceptnb.studies import clip
from conceptnb.tables import steering_analysis, steering_order
from conceptnb.tables.scorecard import eta2
from conceptnb.tables.synthetic_report import comparison

_STAND_INS = {"ViT-B/32": ("small-vit", "ViT"), "RN101": ("small-resnet", "ResNet")}
"""Of the paper's image encoders: our small model, and what a column calls its kind."""
_OPENAI = dict(zip(clip.PAPER_MODELS, PAPER_ENCODERS, strict=True))
"""And OpenAI's own, whose columns are there once they have been computed."""


def compare_tables_1_and_7(mixing: str, **files: str) -> Table:
    """Return R² and MCC of the rows of one mixing: the paper's, and of files by column name."""
    chosen = {
        name: [row for row in results.load(file).rows if row["mixing"] == mixing]
        for name, file in files.items()
    }
    rows = comparison(**chosen).rows
    return Table([{k: v for k, v in row.items() if k != "mixing"} for row in rows], ".2f")


def compare_separation() -> Table:
    """Return η² of the factors of Tables 2-4 by the paper's direction, untrained models beside."""
    share = {
        (row["factor"], row["model"]): row["eta2_paper"]
        for row in [*results.load("clip").rows, *_of_the_paper()]
        if row["table"] == "separation"
    }
    rows = []
    for factor, columns in clip.paper_columns().items():
        cells: dict[str, Any] = {"factor": factor.replace("_", " ")}
        for model, (name, kind) in _STAND_INS.items():
            cells[f"paper, {model}"] = eta2(columns[model])
            cells[f"ours, small {kind}"] = share[factor, name]
            cells[f"untrained {kind}"] = share[factor, f"{name}-untrained"]
            if (factor, _OPENAI[model]) in share:
                cells[f"ours, OpenAI's {model}"] = share[factor, _OPENAI[model]]
        rows.append(cells)
    return Table(rows, ".2f")


def _of_the_paper() -> list[Row]:
    """Return the rows of the paper's own models, none where they have not been computed."""
    computed = clip.OF_THE_PAPER in results.names()
    return results.load(clip.OF_THE_PAPER).rows if computed else []


def valuations(*factors: str) -> Table:
    """Return Tables 2-4, the valuations of some factors: mean ± deviation over images."""
    theirs = clip.paper_columns()
    places = dict.fromkeys(theirs, 0)
    computed = {
        (row["model"], row["factor"], row["value"]): [row["mean"], row["std"]]
        for row in _of_the_paper()
        if row["table"] == "valuations"
    }
    rows = []
    for row in clip.valuation_columns(results.load("clip"), factors).rows:
        factor = row["factor"].replace(" ", "_")
        cells = {"factor": row["factor"], "value": row["value"]}
        for model, (name, kind) in _STAND_INS.items():
            cells[f"paper, {model}"] = theirs[factor][model][places[factor]]
            cells[f"ours, small {kind}"] = row[name]
            if own := computed.get((_OPENAI[model], factor, row["value"])):
                cells[f"ours, OpenAI's {model}"] = own
        places[factor] += 1
        rows.append(cells)
    return Table(rows, ".1f")


def compare_agreement() -> Table:
    """Return Table 5: correlations between two models, and the smallest canonical ones of ours."""
    ours = {
        (row["factor"], "untrained" in str(row)): row
        for row in results.load("clip").rows
        if row["table"] == "agreement"
    }
    computed = {row["factor"]: row for row in _of_the_paper() if row["table"] == "agreement"}
    return Table(
        [
            {
                "factor": factor.replace("_", " "),
                "correlation, paper": printed,
                "correlation, ours": ours[factor, False]["correlation_paper"],
                "correlation, untrained": ours[factor, True]["correlation_paper"],
                "smallest canonical, ours": ours[factor, False]["canonical"][-1],
                "smallest canonical, untrained": ours[factor, True]["canonical"][-1],
            }
            | ({"correlation, OpenAI's": computed[factor]["correlation_paper"]} if computed else {})
            for factor, printed in paper.printed("table5_correlation_ViT_RN").items()
        ],
        ".2f",
    )


def table_6_of_a_real_model() -> Table:
    """Return Table 6: the paper's LLaMA-7B beside the real model that was run, with its gains."""
    [runs] = steering_analysis.by_corpus(results.load("steering_real").runs).values()
    printed = paper.as_printed("table6").rows
    unsteered = printed[0]["mc_accuracy"][0]
    digits = {"MC1": ".3f", "CE": ".2f", "KL": ".2f"}  # as the paper prints
    keys = {"MC1": "mc_accuracy", "CE": "ce_loss", "KL": "kl_div"}
    rows: list[dict[str, Any]] = []
    ours = steering_order.table6_of_model(runs).reset_index().to_dict("records")
    for theirs, row in zip([*printed, *[None] * (len(ours) - len(printed))], ours, strict=True):
        cells: dict[str, Any] = {"technique": row["technique"]}
        for title, key in keys.items():
            cells[f"{title}, paper"] = theirs and format(theirs[key][0], digits[title])
            cells[f"{title}, ours"] = format(float(row[title]), digits[title])
            if title == "MC1":
                gain = theirs and f"{theirs['mc_accuracy'][0] - unsteered:+.3f}"
                cells["gain, paper"] = gain if rows else ""
                cells["gain, ours"] = row["MC1 gained"]
        rows.append(cells)
    return Table(rows)


def table_6_of_toy_corpora() -> Table:
    """Return Table 6: the paper's LLaMA-7B beside small models on every toy corpus."""
    runs = steering_analysis.by_corpus(results.load("steering").runs)
    ours = {
        (row["technique"], row["world"]): row
        for row in steering_analysis.table6_rows(r for own in runs.values() for r in own)
    }
    printed = paper.as_printed("table6").rows
    techniques = dict.fromkeys(technique for technique, _ in ours)
    missing = [None] * (len(techniques) - len(printed))
    rows = []
    for technique, theirs in zip(techniques, [*printed, *missing], strict=True):
        cells: dict[str, Any] = {"technique": technique}
        cells["MC1, paper"] = theirs and theirs["mc_accuracy"]
        cells |= {f"MC1, {corpus}": ours[technique, corpus]["MC1"] for corpus in runs}
        cells["KL, paper"] = theirs and f"{theirs['kl_div'][0]:.2f}"
        for corpus in runs:
            mean, _ = ours[technique, corpus]["KL of a question's edit"]
            cells[f"KL, {corpus}"] = f"{mean:.2f}"
        rows.append(cells)
    return Table(rows, ".3f")
