"""Figures of curricula: the return on every task throughout, and where the trained task changes."""

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from lcd.analyses.transfer import Transfer, trained_task
from lcd.curves.table import split_curves
from lcd.report.figures import MUTED, new_figure, short_name, styled_figure
from lcd.statistics.intervals import mean_interval

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
DASHES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (3, 1.2, 1, 1.2)))


def transfer_figures(transfers: Sequence[Transfer], narrow: bool = False) -> Iterator[tuple[str, Figure]]:
    """Every curriculum's figure by a name fit for a file."""
    for place, transfer in enumerate(transfers):
        yield f"transfer-{place}", transfer_curves(transfer, narrow)


@styled_figure
def transfer_curves(transfer: Transfer, narrow: bool = False) -> Figure:
    """One row a task: its held-out return with its 95 % interval, shaded where the task itself was trained."""
    rows = len(transfer.tasks)
    figure = new_figure(4.4 if narrow else 9.6, 0.7 + (1.0 if narrow else 1.15) * rows)
    panels = figure.subplots(rows, 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    starts = (0.0, *transfer.ends[:-1])
    for place, (axes, task) in enumerate(zip(panels, transfer.tasks, strict=True)):
        rows_of_task = transfer.curves[transfer.curves["evaluated"] == task]
        curves = list(split_curves(rows_of_task, ["seed"]).values())
        grid = np.unique(np.concatenate([steps for steps, _ in curves]))
        heights = np.array([np.interp(grid, *curve) for curve in curves])
        colour = COLOURS[place % len(COLOURS)]
        for stage, start, end in zip(transfer.stages, starts, transfer.ends, strict=True):
            if trained_task(stage, transfer.tasks) == task:
                axes.axvspan(start, end, color=colour, alpha=0.08, linewidth=0)
            axes.axvline(end, color=MUTED, linewidth=0.7, linestyle=(0, (4, 3)), zorder=1)
        axes.plot(grid, heights.mean(0), color=colour, linestyle=DASHES[place % len(DASHES)], linewidth=2, zorder=3)
        if len(curves) > 1:
            axes.fill_between(grid, *mean_interval(heights), color=colour, alpha=0.16, linewidth=0, zorder=2)
        axes.set_title(short_name(task), loc="left", fontsize=9)
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.set_ylim(-0.2, 1.2)
    figure.supxlabel("environment steps (shaded: trained on this task)", fontsize=9)
    figure.supylabel("held-out return, normalised", fontsize=9)
    return figure
