"""``conceptnb learn``: tables of one's own -> a report to read offline, and the fitted learner."""

import shlex
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from conceptnb.commands.options import COUNT, PATH, Several, choice, command, option
from conceptnb.commands.reports import fill, refuse_files, report_options, write_report
from conceptnb.common.files import write_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from conceptnb.common.validation import Array
    from conceptnb.learning.environment_tables import ConceptReport

_FILES = ("report.html", "concepts.safetensors", "apply.py", "valuations.csv")


@command(
    "learn",
    "learn concepts from your own tables: a report, the fitted learner, and how to apply it",
    click.Argument(["tables"], type=PATH, nargs=-1, required=True, metavar="TABLE..."),
    option(
        "--environment",
        metavar="COLUMN",
        help="column that names each row's environment (default, for one table: environment)",
    ),
    option(
        "--base", help="environment collected without looking for anything (default: the first)"
    ),
    Several(
        "--looked-for",
        default=[],
        metavar="ENVIRONMENT=CONCEPT,...",
        help="for every environment but the base, the concepts it was collected by, as in: "
        "dark=roast both=roast,acid (default: each has one of its own)",
    ),
    Several(
        "--missing",
        may_be_empty=True,
        metavar="CODE",
        help="leave out rows with empty cells or with these codes",
    ),
    Several(
        "--ids",
        default=[],
        metavar="COLUMN",
        help="columns that are not learned from, such as identifiers",
    ),
    option(
        "--encoder",
        type=choice("linear", "mlp"),
        default="linear",
        help="what the inverse of the mixing is taken to be (default: linear)",
    ),
    option(
        "--starts",
        type=COUNT,
        help="random starts of --encoder mlp, of which held-out loss chooses one",
    ),
    Several(
        "--components",
        type=int,
        default=[],
        metavar="K",
        help="numbers of principal components to try, chosen by held-out loss (default: learn "
        "from all columns)",
    ),
    Several(
        "--shrinkage",
        type=float,
        default=[0.0],
        metavar="S",
        help="shares in [0, 1) to try, for many columns or few rows, chosen by held-out loss "
        "(default 0)",
    ),
    *report_options(),
)
@click.pass_context
def learn(ctx: click.Context, **given: Any) -> None:
    """Read the tables, learn, and write report, learner, code that applies it, and valuations."""
    args = SimpleNamespace(**given)
    refuse_files(args, _FILES)
    import pandas as pd  # noqa: PLC0415 - what only a run needs

    from conceptnb.commands.table_rows import environments_looked_for, read_rows  # noqa: PLC0415

    rows, environment, left_out = read_rows(args)
    base, looked_for = environments_looked_for(
        args, list(dict.fromkeys(environment)), rows.shape[1]
    )
    from conceptnb.learning.environment_tables import from_arrays, learn_concepts  # noqa: PLC0415 - brings torch
    from conceptnb.learning.standard_errors import valuation_errors  # noqa: PLC0415 - as above

    source = ", ".join(path.name for path in args.tables)
    table = from_arrays(
        rows.to_numpy(float), environment, base, source=source, columns=list(rows.columns)
    )
    notes = [f"{left_out} rows with missing values were left out (--missing)."] if left_out else []
    if not args.looked_for:
        notes.append("Nothing says what was looked for: each environment is taken to have one "
            "concept of its own. Say it with --looked-for.")  # fmt: skip
    if args.base is None:
        notes.append(f"The first environment, {base!r}, is taken as the base. Say it with --base.")
    notes += table.suspicious_columns()
    print(*(f"warning: {line}\n" for line in notes), sep="", end="", flush=True)
    report = learn_concepts(
        table, looked_for, encoder=args.encoder, components=args.components,
        shrinkage=args.shrinkage, starts=args.starts, seed=args.seed,
    )  # fmt: skip
    report.learner.save(args.out / "concepts.safetensors")
    code = fill(
        "apply.txt",
        columns=table.columns,
        concepts=report.concepts,
        new=f"NEW{args.tables[0].suffix}",
    )
    found = pd.DataFrame(report.valuations, columns=report.concepts)
    found.insert(0, "environment", environment, allow_duplicates=True)
    try:
        errors, none = valuation_errors(report), ""
    except ValueError as reason:
        errors, none = None, str(reason)
    else:
        found[[f"{concept} (standard error)" for concept in report.concepts]] = errors
    write_text(args.out / "valuations.csv", found.to_csv(index=False))
    found_since = [line for line in report.warnings if line not in notes]
    report.warnings[:] = notes + found_since
    write_report(
        args.out,
        _FILES,
        "report_learn.html",
        _shown(report, errors, none),
        title=f"Concepts learned from {source}",
        lead=f"{len(table.X):,} rows of {table.X.shape[1]} columns, in {len(table.names)} "
        f"environments; the base is {table.names[0]!r}. Learned from {_chosen(report)}.",
        warnings=report.warnings,
        not_yet_said=found_since,
        none="No warning. That does not prove that the concepts are right: both halves can lead to "
        "the same mixture of concepts.",
        code=code,
        command=shlex.join(["conceptnb", "learn", *ctx.meta["words"]]),
    )


def _chosen(report: "ConceptReport") -> str:
    kept = f"{report.components} principal components" if report.components else "all columns"
    return f"{kept}, with a shrinkage of {report.shrinkage:g}" if report.shrinkage else kept


def _shown(
    report: "ConceptReport", errors: "Array | None", none: str
) -> dict[str, "pd.DataFrame | tuple[Figure, str] | str"]:
    """Return what the page of a report shows, by the name of its place there."""
    import numpy as np  # noqa: PLC0415 - what only a run needs
    import pandas as pd  # noqa: PLC0415

    from conceptnb.plotting.reports import valuations_by_environment  # noqa: PLC0415

    table = report.table
    targets = np.asarray(report.learner.targets)
    looked = [[n for e, n in enumerate(table.names[1:]) if targets[e, k]] for k in range(
        len(report.concepts))]  # fmt: skip
    concepts = pd.DataFrame({"concept": report.concepts, "looked for in": map(", ".join, looked)})
    concepts["agreement of halves"] = [round(report.agreement[c], 3) for c in report.concepts]
    if errors is not None:
        spread = report.valuations[table.environment == 0].std(axis=0)
        concepts["standard error"] = (np.median(errors, axis=0) / spread).round(3)
    means = report.summary().set_index("environment").filter(like="mean ")
    alt = "Median and quartiles of each learned valuation in each environment. Means: " + "; ".join(
        f"{name.removeprefix('mean ')} " + ", ".join(f"{e} {v:.2f}" for e, v in column.items())
        for name, column in means.items()
    )
    figure = valuations_by_environment(report)
    about = (
        f"There is none here: {none}."
        if none
        else ("valuations.csv has that of each row, in the unit of the valuations.")
    )
    shown = {"summary": report.summary(), "concepts": concepts, "figure": (figure, alt)}
    return shown | {"errors": about}
