"""Single test cases on a page: parity plot or confusion matrix, scores, and the worst ones."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from symgnn.report import _markup as markup
from symgnn.report._page import DPI
from symgnn.store import read_json

#: The result of :meth:`symgnn.train._outcomes.Outcomes.summary`.
Outcome = Mapping[str, Any]


class Drawn(NamedTuple):
    """A figure as PNG, with the name of its file."""

    name: str
    png: bytes


def read_outcome(directory: Path) -> Outcome | None:
    """Of the test graphs of a run, from its `outcomes.json`; None where that is not there."""
    found = read_json(directory / "outcomes.json")
    outcome = found.get("test") if isinstance(found, dict) else None
    return outcome if isinstance(outcome, dict) else None


def draw(outcome: Outcome) -> Drawn | None:
    """The parity plot or confusion matrix; None without matplotlib, or if there is nothing."""
    if importlib.util.find_spec("matplotlib") is None:
        return None
    buffer = io.BytesIO()
    if outcome["kind"] == "classification":
        from symgnn.report.figures._class_confusion import class_confusion

        name, figure = "confusion", class_confusion(outcome["confusion"], outcome["classes"])
    elif any(target["points"] for target in outcome["targets"]):
        from symgnn.report.figures._parity import parity_plot

        name, figure = "parity", parity_plot(outcome["targets"])
    else:
        return None
    figure.savefig(buffer, format="png", dpi=DPI, facecolor="white")
    return Drawn(f"{name}.png", buffer.getvalue())


def parts(outcome: Outcome, picture: Drawn | None, seeds: int, graphs: str) -> list[str]:
    """The section of a page on single cases.

    Args:
        outcome: as :meth:`symgnn.train._outcomes.Outcomes.summary` gives it.
        picture: as :func:`draw` gives it.
        seeds: how many initialisations there are.
        graphs: what the cases are of, such as "the test graphs".
    """
    mean = f", the mean over {seeds} initialisations as predict gives it" if seeds > 1 else ""
    if outcome["kind"] == "classification":
        return _classes(outcome, picture, mean, graphs)
    return _targets(outcome, picture, mean, graphs)


def _targets(outcome: Outcome, picture: Drawn | None, mean: str, graphs: str) -> list[str]:
    what = "Displacements of nodes" if outcome["level"] == "coordinates" else "Values"
    found = ["<h2>Predicted and measured</h2>"]
    if picture is not None:
        caption = (
            f"{what} predicted for {graphs}{mean}, against those measured. On the line they "
            "agree; the three worst cases of each target are ringed and named."
        )
        found.append(markup.figure(picture.png, "Predicted and measured", caption))
    rows = [
        [
            target["name"] + (f" [{target['unit']}]" if target["unit"] else ""),
            _case(case),
            *(_number(case[key]) for key in ("measured", "predicted")),
            _number(None if None in (a, b) else b - a),
        ]
        for target in outcome["targets"]
        for case in target["worst"][: 10 if len(outcome["targets"]) == 1 else 5]
        for a, b in [(case["measured"], case["predicted"])]
    ]
    if rows:
        found.append("<h3>Worst cases</h3>")
        heads = ["target", "case", "measured", "predicted", "error"]
        found.append(markup.grid(heads, rows, 2))
    return found


def _classes(outcome: Outcome, picture: Drawn | None, mean: str, graphs: str) -> list[str]:
    found = ["<h2>Classes</h2>"]
    if picture is not None:
        caption = (
            f"How many of {graphs} of each true class (row) are predicted as each class (column)"
            f"{mean}. Colours are shares of the true class."
        )
        found.append(markup.figure(picture.png, "Confusion matrix", caption))
    heads = ["class", "precision", "recall", "F1", "support"]
    rows = [
        [
            score["class"],
            *(_number(score[key], ".3f") for key in ("precision", "recall", "f1")),
            f"{score['support']:,}",
        ]
        for score in outcome["scores"]
    ]
    found += ["<h3>Each class</h3>", markup.grid(heads, rows)]
    wrong = [
        [_case(case), case["measured"], case["predicted"], _number(case["probability"], ".3f")]
        for case in outcome["worst"]
    ]
    if wrong:
        found.append("<h3>Most certain mistakes</h3>")
        found.append(markup.grid(["case", "true", "predicted", "probability"], wrong, 3))
    return found


def case_name(case: Mapping[str, Any]) -> str:
    """The graph, and within it the node or edge."""
    name = f"graph {case['name']}" if case["name"].isdigit() else str(case["name"])
    if "node" in case:
        return f"{name}, node {case['node']}"
    if "source" in case:
        return f"{name}, edge {case['source']}-{case['target']}"
    return name


def short(text: str, most: int = 28) -> str:
    """At most so many characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _case(case: Mapping[str, Any]) -> str:
    """Its name, with the fold where there are some."""
    name = case_name(case)
    return f"{name} (fold {case['fold']})" if "fold" in case else name


def _number(value: float | None, form: str = ".4g") -> str:
    return "–" if value is None else f"{value:{form}}"
