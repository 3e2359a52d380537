"""Records the motions of the start page: what the explorer shows along a slider.

Writes assets/motions.js, which assets/player.js plays: coordinates on the screen, and for each
network whether its symmetry has the move and how much its output changes.
"""

import json
from pathlib import Path

import torch

from symgnn.explorer import MOVES, measure, move, networks_for, shape_named
from symgnn.explorer._explorer_figures import projected

FILE = Path(__file__).parent / "assets" / "motions.js"
START = "// written by docs/make_recording.py\nconst MOTIONS = "
NETWORKS = ["GN", "TGN", "DGN", "SDGN", "Combined", "AGN", "CGN"]
#: The slider, the shape, and how far.
MOTIONS = [
    ("turn", "cube", 180),
    ("scale", "dodecahedron", -1),
    ("redraw", "cube", 1),
    ("flex", "cube", 1),
    ("twist a bond", "butane (molecule)", 180),
    ("special conformal", "cube", 1),
    ("shear", "icosahedron", 1),
    ("turn", "tesseract (4-d)", 180),
]
FRAMES = 16


def record(name: str, shape: str, far: float) -> dict:
    """One motion, from 0 to the end of the slider."""
    data = shape_named(shape)
    networks = [one for one in networks_for(data.pos.size(1)) if one.name in NETWORKS]
    frames = []
    for k in range(FRAMES + 1):
        value = far * k / FRAMES
        moved = move(data.pos, data.edge_index, {name: value})
        reactions = measure(networks, data, moved.pos, moved.kinds)
        screen = projected(moved.pos - data.pos.mean(0))
        frames.append(
            {
                "points": [[round(float(v), 3) for v in row[:2]] for row in screen],
                "changes": [float(f"{one.change:.1e}") for one in reactions],
            }
        )
    kind = MOVES[name].kind
    pairs = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]
    return {
        "name": f"{name}: {shape.split(' (')[0]}",
        "edges": pairs.T.tolist(),
        "keeps": [kind in one.symmetry for one in networks],
        "frames": frames,
    }


def main() -> None:
    """Record all of them."""
    torch.set_num_threads(1)
    found = {"networks": NETWORKS, "motions": [record(*one) for one in MOTIONS]}
    FILE.write_text(START + json.dumps(found, separators=(",", ":")) + ";\n")
    print("wrote", FILE)


if __name__ == "__main__":
    main()
