"""The losses of a training run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from symgnn.report.figures._style import log_scale, plain

COLOURS = {"train": "#134e6f", "validation": "#e07b00"}


@plain
def run_curves(
    rows: Sequence[Mapping[str, float]], baselines: Mapping[str, float] | None = None
) -> Figure:
    """Training and validation loss against the epoch, and the other numbers of the validation.

    Rows are those of the log, one for each epoch and seed. Lines are means over the seeds, each
    band reaches from the least to the largest. `baselines` are dashed lines, by the name of the
    number.
    """
    names = [name.removeprefix("validation_") for name in rows[0] if name.startswith("validation_")]
    others = [name for name in names if name.partition(" ")[0] not in ("loss", "mse")][:5]
    count = 1 + len(others)
    columns = min(count, 3)
    lines = -(-count // columns)
    figure = Figure(figsize=(3.9 * columns, 2.9 * lines), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    for panel in panels[count:]:
        panel.remove()
    for panel, name in zip(panels, ["loss", *others], strict=False):
        low, high = np.inf, -np.inf
        for split, colour in COLOURS.items():
            if f"{split}_{name}" in rows[0]:
                epochs, least, mean, most = _over_seeds(rows, f"{split}_{name}")
                marker = "o" if len(epochs) == 1 else None
                panel.plot(epochs, mean, color=colour, linewidth=1.5, label=split, marker=marker)
                panel.fill_between(epochs, least, most, color=colour, alpha=0.15, linewidth=0)
                low, high = min(low, least.min()), max(high, most.max())
        trivial = (baselines or {}).get(name)
        if trivial is not None:
            panel.axhline(trivial, color="#888888", linewidth=1, linestyle="--", label="baseline")
        panel.set(title=name, xlabel="epoch")
        panel.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
        if 0 < 10 * low < high < np.inf:
            log_scale(panel)
        panel.grid(alpha=0.25)
    panels[0].legend()
    return figure


def _over_seeds(
    rows: Sequence[Mapping[str, float]], name: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Epochs, and at each the least, mean and largest value over the seeds."""
    values: dict[int, list[float]] = {}
    for row in rows:
        values.setdefault(int(row["epoch"]), []).append(row[name])
    epochs = sorted(values)
    found = [(min(v), float(np.mean(v)), max(v)) for v in (values[epoch] for epoch in epochs)]
    least, mean, most = np.array(found).T
    return np.array(epochs), least, mean, most
