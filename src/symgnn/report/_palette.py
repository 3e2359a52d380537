"""The colours of the report: accuracies, blocks and verdicts."""

from __future__ import annotations

#: The colours of the accuracies 0, 1/3, 2/3 and 1.
HEAT = ("#f6f4ee", "#bfe0d3", "#62b2ad", "#134e6f")
#: Where the paper has no number.
EMPTY = "#e9e9e9"
#: The outlines of the cells that differ from the paper or break the theory.
OUTLINE = {"differs": "#f08a00", "violated": "#e00000"}

_BLOCKS = {
    "AGN": "#0072b2",
    "SDGN": "#009e73",
    "DGN": "#e69f00",
    "GN": "#d55e00",
    "CGN": "#cc79a7",
    "Combined": "#5b3f99",
    "EGNN": "#1b1b1b",
}


def block_colour(block: str) -> str:
    """The colour of a block's lines; grey for one that is not known."""
    return _BLOCKS.get(block, "#666666")


def heat_colour(value: float) -> str:
    """The colour of an accuracy between 0 and 1, as `#rrggbb`."""
    place = min(max(value, 0.0), 1.0) * (len(HEAT) - 1)
    k = min(int(place), len(HEAT) - 2)
    low, high = (tuple(int(c[i : i + 2], 16) for i in (1, 3, 5)) for c in HEAT[k : k + 2])
    mixed = (round(a + (place - k) * (b - a)) for a, b in zip(low, high, strict=True))
    return "#" + "".join(f"{c:02x}" for c in mixed)


def ink(value: float) -> str:
    """The colour of a number that can be read on the colour of this accuracy."""
    colour = heat_colour(value)
    red, green, blue = ((int(colour[i : i + 2], 16) / 255) ** 2.2 for i in (1, 3, 5))
    return "#ffffff" if 0.21 * red + 0.72 * green + 0.07 * blue < 0.2 else "#1b1b1b"
