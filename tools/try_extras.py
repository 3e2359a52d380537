"""Install a wheel with each extra alone into an empty environment, and use what the extra is for.

Usage: python tools/try_extras.py WHEEL TORCH [EXTRA ...], where TORCH is a requirement such as
torch==2.13.0. Needs uv beside the Python that runs this. Environments are removed when done.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BASE = """
import symgnn
run = symgnn.load("solids")
solid = symgnn.data.polytope("hypercube", dimension=3)
assert run.predict(solid).value.shape == (1, 5)
assert symgnn.audit.audit(symgnn.nn.build("dgn"), solid, groups="E(3)", elements=2).holds("E(3)")
"""
#: What each extra is for, in a few lines.
USES = {
    "": BASE,
    "molecules": """
import symgnn
with open("table.csv", "w") as file:
    file.write("smiles,y\\nCCO,1.0\\n")
(graph,) = symgnn.data.read("table.csv", columns=["y"])
assert graph.num_nodes == 9 and graph.pos.shape == (9, 3)  # with hydrogens
""",
    "atoms": """
import symgnn
from ase.build import bulk
(graph,) = symgnn.data.read(bulk("Cu"), radius=3.0, columns=[], elements=[])
assert graph.edge_index.shape[1] == 12  # the neighbours of face-centred copper
""",
    "plot": """
import symgnn
solids = symgnn.data.load("polytopes-3d", copies=2)
symgnn.fit(solids, "dgn", epochs=1, progress=False, out="run")
page = open("run/report.html").read()
assert "Install symgnn[plot]" not in page and ("<svg" in page or "image/" in page)
""",
    "train": """
import os
import symgnn
solids = symgnn.data.load("polytopes-3d", copies=2)
symgnn.fit(solids, "dgn", epochs=1, progress=False, out="logged")
assert any("tfevents" in name for _, _, names in os.walk("logged") for name in names)
""",
    "images": """
import torch
import symgnn
image = torch.arange(400.0).view(20, 20) / 400
assert symgnn.data.superpixel_graph(image, segments=16).pos.shape[1] == 2
""",
    "mesh": """
import symgnn
with open("tetrahedron.obj", "w") as file:
    file.write("v 0 0 0\\nv 1 0 0\\nv 0 1 0\\nv 0 0 1\\nf 1 2 3\\nf 1 2 4\\nf 1 3 4\\nf 2 3 4\\n")
(graph,) = symgnn.data.read("tetrahedron.obj", columns=[])
assert graph.num_nodes == 4 and graph.num_edges == 12
""",
    "tsp": """
import symgnn
problems = symgnn.data.load("tsp", source="generated", nodes=(8, 10), limit=4)
assert len(problems.train) >= 1
""",
    "explore": """
from symgnn.explorer._explorer_page import make_app
assert make_app().layout is not None
""",
}
USES["all"] = "".join(USES.values())
USES["ray"] = """
from symgnn.experiments import Ray
def part(on_epoch):
    on_epoch()
    return {"value": 1}
if __name__ == "__main__":
    (done,) = Ray(most=1).run({"part": part}, lambda epochs: None)
    assert done == ("part", {"value": 1})
"""


def tried(wheel: Path, torch: str, extra: str) -> float:
    """Make an environment, use the extra, and say how long it took in seconds."""
    begin = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix=f"symgnn-{extra or 'base'}-"))
    uv = str(Path(sys.executable).with_name("uv"))
    python = str(folder / "env" / "bin" / "python")
    wanted = f"symgnn[{extra}] @ {wheel.resolve().as_uri()}" if extra else str(wheel)
    try:
        subprocess.run([uv, "venv", "-q", "--python", sys.executable, folder / "env"], check=True)
        subprocess.run([uv, "pip", "install", "-q", "--python", python, torch, wanted], check=True)
        subprocess.run([python, "-c", USES[extra]], check=True, cwd=folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return time.monotonic() - begin


def main() -> None:
    wheel, torch, *extras = sys.argv[1:]
    for extra in extras or USES:
        seconds = tried(Path(wheel), torch, extra)
        print(
            f"symgnn{f'[{extra}]' if extra else '':12} installs and runs ({seconds:.0f} s)",
            flush=True,
        )


if __name__ == "__main__":
    main()
