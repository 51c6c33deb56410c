"""Map of the field: what each line of work needs, and what it promises."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from conceptnb.plotting._style import FAINT, INK, PALETTE, new_figure, styled

NEEDS = (
    "a trained model,\nor data",
    "labels, pairs,\nor views",
    "sets selected\nfor concepts",
    "a change of\nevery factor",
)
PROMISES = ("a measured\neffect", "a space, up to\na linear map", "concepts", "all factors")


@styled
def chart(field: pd.DataFrame) -> Figure:
    """Draw lines of work by what they need (to the right) and what they promise (upwards).

    Parameters
    ----------
    field
        One row for each line of work, with its name in "line of work", and its place on the two
        scales in "needs" and "promises": 0 to 3, in the order of `NEEDS` and `PROMISES`.

    Returns
    -------
    Figure
        One chart; the row named "this paper" is set apart by colour, shape and weight.
    """
    figure, axes = new_figure(height=4.4)
    ax = axes[0, 0]
    for name, needs, promises in field[["line of work", "needs", "promises"]].itertuples(
        index=False
    ):
        ours = name == "this paper"
        ax.plot(needs, promises, "D" if ours else "o", color=PALETTE[0] if ours else FAINT)
        ax.annotate(
            name,
            (needs, promises),
            (6, 0),
            textcoords="offset points",
            va="center",
            fontsize="small",
            weight="bold" if ours else "normal",
            color=INK,
        )
    ax.set(
        xticks=np.arange(4),
        xticklabels=NEEDS,
        yticks=np.arange(4),
        yticklabels=PROMISES,
        xlim=(-0.2, 4.1),
        ylim=(-0.5, 3.5),
        xlabel="what you have to bring",
        ylabel="what you are promised",
    )
    return figure
