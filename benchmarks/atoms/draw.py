"""The picture of `docs/atoms.md`: force errors of potentials at equal time, and learning curves.

python benchmarks/atoms/draw.py benchmarks/atoms/peers.json docs/pictures/atoms-peers.png
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt

OURS, THEIRS = "#1f6f8b", "#b9b9b9"
TITLES = {"emt": "metals and alloys (EMT)", "gfn2": "molecules (GFN2-xTB)"}


def main(results: Path, out: Path) -> None:
    """Draw it."""
    found = json.loads(results.read_text())
    figure, axes = plt.subplots(1, len(found) + 1, figsize=(4 * (len(found) + 1), 3.2))
    for axis, (name, each) in zip(axes, found.items(), strict=False):
        networks = sorted(each["networks"].items(), key=lambda item: -item[1]["forces"])
        values = [value["forces"] for _, value in networks]
        colours = [THEIRS if "(" in label else OURS for label, _ in networks]
        bars = axis.barh([label for label, _ in networks], values, color=colours)
        axis.bar_label(bars, fmt="%.0f", padding=3, fontsize=8)
        axis.set_xscale("log")
        axis.set_xlim(min(values) / 2, max(values) * 2)
        axis.set_title(TITLES[name], fontsize=10)
        axis.set_xlabel("force error, meV/Å", fontsize=9)
        curve = {int(k): v["forces"] for k, v in each["learning"]["errors"].items()}
        counts = sorted(curve)
        label = f"{each['learning']['network']}, {TITLES[name]}"
        axes[-1].loglog(counts, [curve[k] for k in counts], "o-", label=label)
    axes[-1].set_xticks(counts, [str(k) for k in counts])
    axes[-1].minorticks_off()
    axes[-1].set_title("learning curves", fontsize=10)
    axes[-1].set_xlabel("configurations", fontsize=9)
    axes[-1].set_ylabel("force error, meV/Å", fontsize=9)
    axes[-1].legend(fontsize=7)
    for axis in axes:
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(out, dpi=150)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
