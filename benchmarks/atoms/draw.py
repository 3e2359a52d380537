"""The picture of `docs/atoms-measured.md`: force errors of potentials at equal time, and learning curves.

python benchmarks/atoms/draw.py benchmarks/atoms/peers.json docs/pictures/atoms-peers.png
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

OURS, THEIRS = "#1f6f8b", "#b9b9b9"
TITLES = {"emt": "metals and alloys (EMT)", "gfn2": "molecules (GFN2-xTB)"}


def bars(axis: Any, found: dict[str, Any], title: str) -> None:
    """The mean force error of each potential, with the error of each seed as a dot."""
    networks = sorted(found["means"].items(), key=lambda item: -item[1]["forces"])
    values = [value["forces"] for _, value in networks]
    colours = [
        THEIRS if label.startswith(("PaiNN", "SchNet", "EGNN")) else OURS for label, _ in networks
    ]
    axis.barh([label for label, _ in networks], values, color=colours)
    for one in found["rounds"]:
        seeds = [one[label]["forces"] for label, _ in networks]
        axis.plot(seeds, range(len(seeds)), "k.", markersize=3)
    limit = max(values) * 1.25
    for row, (label, value) in enumerate(networks):
        errors = [one[label]["forces"] for one in found["rounds"]]
        end = max([value["forces"], *(each for each in errors if each < limit)])
        text = f"{value['forces']:.3g}"
        if max(errors) > limit:  # the picture is of the others
            text += f"\nseed at {max(errors):.0f}"
        axis.annotate(text, (end, row), (6, 0), textcoords="offset points", fontsize=8, va="center")
    axis.set_xlim(0, limit)
    axis.set_title(title, fontsize=10)
    axis.set_xlabel("force error, meV/Å", fontsize=9)


def main(results: Path, out: Path) -> None:
    """Draw it."""
    found = {k: v for k, v in json.loads(results.read_text()).items() if v.get("means")}
    curves = {k: v["learning"] for k, v in found.items() if v.get("learning")}
    compared = {k: v for k, v in found.items() if len(v["means"]) > 1}
    count = len(compared) + bool(curves)
    figure, axes = plt.subplots(1, count, figsize=(4.4 * count, 3.2), squeeze=False)
    for axis, (name, each) in zip(axes[0], compared.items(), strict=False):
        bars(axis, each, TITLES[name])
    last, ticks = axes[0, -1], set()
    for (name, curve), colour in zip(curves.items(), (OURS, "#c9722e"), strict=False):
        errors = {int(k): v["forces"] for k, v in curve["errors"].items()}
        counts = sorted(errors)
        ticks |= set(counts)
        label = f"{curve['network']}, {TITLES[name]}"
        last.loglog(counts, [errors[k] for k in counts], "o-", color=colour, label=label)
        for k in counts:
            last.annotate(
                f"{errors[k]:.0f}", (k, errors[k]), (4, 4), textcoords="offset points", fontsize=8
            )
    if curves:
        last.set_xticks(sorted(ticks), [str(k) for k in sorted(ticks)])
        last.minorticks_off()
        last.set_title("learning curve, equal epochs", fontsize=10)
        last.set_xlabel("configurations", fontsize=9)
        last.set_ylabel("force error, meV/Å", fontsize=9)
        last.legend(fontsize=7)
    for axis in axes[0]:
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(out, dpi=150)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
