"""The figures that a set of results can be shown with."""

from __future__ import annotations

from typing import NamedTuple

from matplotlib.figure import Figure

from symgnn.report._comparison import is_comparison
from symgnn.report._readings import is_readings
from symgnn.report._result_rows import Results, is_efficiency, long_head
from symgnn.report.figures._confusion import confusion_matrices, telling_column
from symgnn.report.figures._curves import training_curves
from symgnn.report.figures._efficiency_curve import data_efficiency
from symgnn.report.figures._heatmap import heat_map
from symgnn.report.figures._solids import wireframes
from symgnn.report.figures._training_tests import step_ratios, target_curves, test_curves


class Captioned(NamedTuple):
    """A figure with the name of its file, a heading and a caption."""

    name: str
    heading: str
    caption: str
    figure: Figure


def all_figures(results: Results) -> list[Captioned]:
    """The figures for these results; those whose data are missing are left out."""
    if is_readings(results):
        return []
    if is_efficiency(results):
        return [Captioned("efficiency", "Data efficiency", _EFFICIENCY, data_efficiency(results))]
    if is_comparison(results):
        return _comparison(results)
    if not results["rows"]:
        return []
    figures = [Captioned("heat_map", "Accuracies", _HEAT_MAP, heat_map(results))]
    column = telling_column(results)
    if any(row.get("confusion") for row in results["rows"]):
        caption = _CONFUSION
        if column is not None:
            caption += f" Besides the training graphs: {long_head(column)}, where rows differ most."
        figure = confusion_matrices(results)
        figures.append(Captioned("confusion", "What is taken for what", caption, figure))
    if any(row.get("curve") for row in results["rows"]):
        figures.append(Captioned("training", "Training", _TRAINING, training_curves(results)))
    caption = _SOLIDS if results["dimension"] == 3 else _PROJECTIONS
    figures.append(Captioned("polytopes", "The classes", caption, wireframes(results)))
    return figures


def _comparison(results: Results) -> list[Captioned]:
    if "batch_size" in results:
        return [Captioned("ratios", "Ratios", _RATIOS, step_ratios(results))]
    found = [Captioned("test", "The test during training", _TEST, test_curves(results))]
    if all(row["curve"].get("targets") for row in results["rows"]):
        heading = "Each target during training"
        found.append(Captioned("targets", heading, _TARGETS, target_curves(results)))
    return found


_TEST = (
    "The number on the test graphs after epochs of training, mean over the initialisations; the "
    "band is one deviation to either side."
)
_TARGETS = "The mean squared error of each standardised target on the test graphs, as above."
_RATIOS = "Bars: here. Black lines: the paper, where it has a number. n is of the polytopes."
_HEAT_MAP = (
    "The accuracies measured here (left) and the paper’s (right), on the same scale of colours. "
    "Cells that differ are outlined; a dash is a cell that the paper does not have."
)
_CONFUSION = (
    "Row: the true class; column: the predicted one; the number is the share of predictions, "
    "averaged over the initialisations (below 0.05 it is not written). A block that cannot tell "
    "classes apart spreads them over the same columns. A block without a coordinate map is shown "
    "with every map."
)
_TRAINING = (
    "The loss on the training graphs, mean over the initialisations; the band is one deviation "
    "above the mean, and the same ratio below. A block that cannot tell two classes apart "
    "does not get below a certain loss. A block without a coordinate map is in every panel of its "
    "aggregation."
)
_SOLIDS = "The classes, in perspective; what is farther away is paler."
_PROJECTIONS = (
    "The classes, projected onto the Coxeter plane, which shows most of their symmetry; edges are "
    "coloured by their distance from the centre. Vertices may fall onto one another."
)
_EFFICIENCY = (
    "Accuracy on transformed copies against the number of training samples per class. Curves: mean "
    "over the initialisations, with a band of one deviation. Level lines: blocks trained on a "
    "single sample per class; lines at the same height are drawn with staggered dashes."
)
