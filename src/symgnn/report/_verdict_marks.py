"""How cells compare with the paper and with the theory: colours, signs, and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from symgnn.report._result_rows import (
    Cell,
    Results,
    cells_of,
    label,
    long_head,
    ours,
    papers,
    rows_of,
)

#: A cell differs from the paper's only if it is farther away than this.
NEAR = 0.05
#: It differs only if it is farther away than so many standard errors of the difference.
ERRORS = 3


class Verdict(NamedTuple):
    """The display of a verdict: a style of rich, a sign, and its meaning."""

    style: str
    sign: str
    meaning: str


#: The verdicts on a cell beside the paper's, with their colours and words.
VERDICTS = {
    "exact": Verdict("green", "✓", "fixed by theory, and met"),
    "within": Verdict("green", "≈", "agrees with the paper"),
    "differs": Verdict("yellow", "≠", "differs from the paper"),
    "violated": Verdict("bold red", "✗", "fixed by theory, and not met"),
    "new": Verdict("", "+", "the paper has no such cell"),
}


def verdict_of(cell: Cell) -> Verdict:
    """How the cell's verdict is shown."""
    return VERDICTS[cell.get("verdict", "new")]


def agrees(cell: Cell) -> bool | None:
    """Whether the cell agrees with the paper's value; None if the paper has none.

    A cell that the theory fixes agrees if it differs by no more than the larger of 0.05 and three
    standard errors of the difference.
    """
    if cell.get("paper_mean") is None:
        return None
    if cell["verdict"] in ("within", "differs"):
        return bool(cell["verdict"] == "within")
    tolerance = max(NEAR, ERRORS * (cell.get("error") or 0.0))
    return bool(abs(cell["mean"] - cell["paper_mean"]) <= tolerance + 1e-9)


def standing(cell: Cell | None) -> str:
    """The mark of a cell: `violated`, `differs` (from the paper), or nothing."""
    if cell is None:
        return ""
    if cell.get("verdict") == "violated":
        return "violated"
    return "differs" if agrees(cell) is False else ""


def summary(results: Results) -> str:
    """The numbers of cells that agree with the paper, by kind, and with the theory."""
    cells = [cell for _, _, cell in cells_of(results)]
    compared = [cell for cell in cells if agrees(cell) is not None]
    fixed = [cell for cell in cells if cell.get("verdict") in ("exact", "violated")]
    violated = sum(cell["verdict"] == "violated" for cell in fixed)
    if not compared:
        text = "No cell has a number of the paper beside it"
    else:
        text = f"{_count(compared).capitalize()} cells that the paper has agree with it"
        parts = [
            f"{_count(those)} {what}"
            for kind, what in _KINDS.items()
            if (those := [cell for cell in compared if cell.get("kind") == kind])
        ]
        text += f" ({', '.join(parts)})" if parts else ""
    if fixed and not violated:
        text += f"; {len(fixed)} are fixed by theory, all met exactly"
    elif fixed:
        text += f"; {len(fixed)} are fixed by theory, {violated} of them not met"
    new = len(cells) - len(compared)
    return f"{text}. {new} of the {len(cells)} cells are new." if new and compared else f"{text}."


#: The kinds of cells that the paper has, in words.
_KINDS = {
    "fixed": "that theory fixes",
    "trivial": "where it has 1 or chance",
    "open": "others",
}


def _count(cells: Sequence[Cell]) -> str:
    """`all 5`, or `4 of 5`: how many of them agree."""
    agreeing = sum(bool(agrees(cell)) for cell in cells)
    return f"all {len(cells)}" if agreeing == len(cells) else f"{agreeing} of {len(cells)}"


def differences(results: Results) -> list[str]:
    """The cells that differ from the paper or break the theory, in words, the latter first."""
    violated, differing = [], []
    for row, column, cell in cells_of(results):
        where = f"{label(row)}; {long_head(column)}: {ours(cell)}"
        paper = papers(cell)
        if standing(cell) == "violated":
            against = f" (the paper has {paper})" if paper else ""
            violated.append(f"{where}, although theory fixes this cell{against}.")
        elif standing(cell) == "differs":
            gap = cell["mean"] - cell["paper_mean"]
            text = f"{where} here, {paper} in the paper, {'higher' if gap > 0 else 'lower'} here"
            text += f" by {abs(gap):.2f}"
            if cell.get("error"):
                text += f" or {abs(gap) / cell['error']:.1f} standard errors"
            if cell["verdict"] == "exact":
                text += "; theory fixes this cell, and ours meets it"
            differing.append(f"{text}.")
    return violated + differing


def mixed_up(results: Results, column: str = "train", share: float = 0.1) -> list[str]:
    """The classes that each row confuses, in words; rows without confusions are omitted.

    Two classes are confused if one is predicted for the other in at least a fraction `share` of
    the cases, averaged over both directions.
    """
    sentences = []
    for row in rows_of(results):
        confusion = row.get("confusion", {}).get(column)
        if confusion is None:
            continue
        groups = [group for group in _groups(confusion, share) if len(group) > 1]
        classes = results["classes"]
        if groups and len(groups[0]) == len(classes):
            sentences.append(f"{label(row)}: all {len(classes)} classes")
        elif groups:
            named = "; ".join(" and ".join(classes[k] for k in group) for group in groups)
            sentences.append(f"{label(row)}: {named}")
    return sentences


def _groups(confusion: Sequence[Sequence[float]], share: float) -> list[list[int]]:
    """The classes, joined wherever two are mixed up."""
    groups = [[k] for k in range(len(confusion))]
    for a in range(len(confusion)):
        for b in range(a):
            if (confusion[a][b] + confusion[b][a]) / 2 >= share:
                one = next(group for group in groups if a in group)
                other = next(group for group in groups if b in group)
                if one is not other:
                    groups.remove(one)
                    other.extend(one)
    return [sorted(group) for group in groups]
