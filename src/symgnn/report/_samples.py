"""A picture of one graph of a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from symgnn._argument_checks import check_count
from symgnn.data._image_files import Part, read_images
from symgnn.data._nbody import simulate_charged
from symgnn.data._registry import dataset, load
from symgnn.data._superpixel_sets import IMAGE_SETS
from symgnn.data._superpixels import superpixels
from symgnn.data._task import Splits

SPLITS = ("train", "validation", "test")
#: The frames of the charged particles that are asked from and for.
QUESTION, ANSWER = 30, 40


def draw_sample(name: str, index: int, out: Path, *, split: str = "train", **options: Any) -> None:
    """Draw a graph of a dataset into the file `out`; `options` are those of `load`."""
    try:
        from symgnn.report.figures import _sample_graphs as sample_graphs
        from symgnn.report.figures._solids import wireframes
    except ImportError:
        raise ValueError("matplotlib is not installed; pip install symgnn[plot]") from None
    if split not in SPLITS:
        raise ValueError(f"split: {split!r} is not known; choose from {', '.join(SPLITS)}")
    index = check_count("index", index, 0)
    if "limit" in dataset(name).options:
        options["limit"] = [index + 1 if each == split else 1 for each in SPLITS]
    splits = load(name, **options)
    graphs = getattr(splits, split)
    if index >= len(graphs):
        raise ValueError(f"index: {index} is not possible; {split} of {name} has {len(graphs)}")
    data = graphs[index]
    where = f"{name}, {split} {index}"
    if name == "qm9":
        title = f"{sample_graphs.formula(data.z)}, number {data.number} of QM9"
        figure = sample_graphs.molecule(
            data, splits.scale, title, _targets(splits, data.y[0].tolist())
        )
    elif name in IMAGE_SETS:
        part: Part = "test" if split == "test" else "train"
        reading = {key: options[key] for key in ("source", "root") if key in options}
        first = splits.test[0].number if split == "test" else 0
        image = read_images(name, part, **reading).pixels[data.number - first]
        labels = superpixels(image, IMAGE_SETS[name].segments)
        title = f"{splits.task.classes[int(data.y)]} ({where})"
        figure = sample_graphs.image_graph(image, labels, data, splits.scale, title)
    elif name == "tsp":
        title = f"{data.num_nodes} nodes, {int(data.y.sum())} of {data.num_edges} edges in the tour"
        figure = sample_graphs.tour(data, splits.scale, f"{where}: {title}")
    elif name == "nbody":
        seed = (splits.about["seed"], SPLITS.index(split))
        particles, dimension = data.pos.shape
        found = simulate_charged(
            index + 1,
            seed=seed,
            particles=particles,
            dimension=dimension,
            frames=range(ANSWER + 1),
        )
        path, charge = found.pos[index].numpy(), found.charge[index].numpy()
        figure = sample_graphs.trajectories(path, charge, (QUESTION, ANSWER), where)
    else:
        kind = splits.task.classes[int(data.y)]
        figure = wireframes({"dimension": data.pos.shape[1], "classes": [kind]})
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(out, dpi=160, facecolor="white")
    except (OSError, ValueError) as error:
        raise ValueError(f"--out: cannot write {out} ({error})") from None


def _targets(splits: Splits, y: list[float]) -> list[str]:
    """Name and value of each target, in its unit."""
    task, about = splits.task, splits.about
    if about["standardised"]:
        both = zip(about["mean"], about["std"], y, strict=True)
        y = [round(mean + std * value, 6) for mean, std, value in both]
    named = zip(task.targets, y, task.units, strict=True)
    return [f"{name}\t{value:.6g} {unit}" for name, value, unit in named]
