"""The figures of the report. They need matplotlib: `pip install symgnn[plot]`."""

from symgnn.report.figures._confusion import confusion_matrices, telling_column
from symgnn.report.figures._curves import training_curves
from symgnn.report.figures._efficiency_curve import data_efficiency
from symgnn.report.figures._figure_list import Captioned, all_figures
from symgnn.report.figures._heatmap import heat_map
from symgnn.report.figures._solids import wireframes

__all__ = [
    "Captioned",
    "all_figures",
    "confusion_matrices",
    "data_efficiency",
    "heat_map",
    "telling_column",
    "training_curves",
    "wireframes",
]
