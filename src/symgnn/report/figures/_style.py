"""The style of all figures: a plain style, and a map from accuracies to colours."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from symgnn.report._palette import EMPTY, HEAT

P = ParamSpec("P")

_PLAIN = {
    "font.family": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "legend.frameon": False,
}

#: Accuracies from 0 to 1; a missing one is grey.
HEAT_MAP = LinearSegmentedColormap.from_list("accuracy", HEAT).with_extremes(bad=EMPTY)


def plain(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Draw in the plain style, whatever the style of the session; that one is left as it is."""

    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with style.context(["default", _PLAIN]):
            return draw(*args, **kwargs)

    return drawn


def log_scale(axes: Axes, name: str = "y") -> None:
    """A logarithmic axis whose numbers are written out; where it is short, others between the
    powers of ten too.
    """
    axes.set(**{f"{name}scale": "log"})
    axis: Axis = getattr(axes, f"{name}axis")

    def between(value: float, _: float) -> str:
        low, high = axis.get_view_interval()
        digits = "2345678" if high < 4 * low else "235"
        return f"{value:g}" if f"{value:e}"[0] in digits and high < 100 * low else ""

    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_formatter(between)
