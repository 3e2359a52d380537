"""One graph of a dataset, drawn: a molecule, an image with its superpixels, a tour, particles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from torch import Tensor
from torch_geometric.data import Data

from symgnn.report.figures._style import plain

#: atomic number: (symbol, colour, radius in angstrom as drawn)
_ATOMS = {
    1: ("H", "#f2f2f2", 0.25),
    6: ("C", "#4a4f55", 0.38),
    7: ("N", "#3e6fd8", 0.37),
    8: ("O", "#d83a33", 0.36),
    9: ("F", "#5fb04a", 0.34),
}
_LINE, _PALE, _TOUR = "#134e6f", "#b9c7ce", "#d55e00"
_CHARGE = {1: "#d55e00", -1: "#0072b2"}


@plain
def molecule(data: Data, scale: float, title: str, facts: Sequence[str]) -> Figure:
    """A molecule of QM9, seen along its thinnest direction, beside what is known of it."""
    z = data.z.numpy()
    pos = data.pos.double().numpy() / scale
    pos = pos - pos.mean(axis=0)
    turned = pos @ np.linalg.svd(pos, full_matrices=True)[2].T
    figure = Figure(figsize=(8.4, 4.6), layout="constrained")
    axes, words = figure.subplots(1, 2, width_ratios=(2.1, 1))
    near = turned[:, 2] - turned[:, 2].min()
    near = near / max(float(near.max()), 1.0)
    one_way = data.edge_index[0] < data.edge_index[1]
    kinds = data.edge_attr[one_way].argmax(dim=1).tolist()
    bonds = list(zip(data.edge_index[:, one_way].T.tolist(), kinds, strict=True))
    for (a, b), kind in sorted(bonds, key=lambda bond: near[bond[0]].sum()):
        _draw_bond(axes, turned[[a, b]], [_ATOMS[z[a]][1], _ATOMS[z[b]][1]], kind)
    for atom in np.argsort(near):
        _draw_atom(axes, turned[atom, :2], *_ATOMS[z[atom]][1:], near[atom])
    low, high = turned[:, :2].min(axis=0) - 0.6, turned[:, :2].max(axis=0) + 0.6
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal", title=title)
    axes.axis("off")
    _list_facts(words, facts)
    shown = sorted(set(z.tolist()), key=lambda number: -number)
    for place, number in enumerate(shown):
        symbol, colour, _ = _ATOMS[number]
        words.plot(0.05 + 0.17 * place, 0.03, "o", color=colour, markeredgecolor="#333333", ms=9)
        words.text(0.1 + 0.17 * place, 0.03, symbol, va="center")
    return figure


def formula(z: Tensor) -> str:
    """The sum formula of atomic numbers, in Hill's order, for a title."""
    counts = Counter(_ATOMS[number][0] for number in z.tolist())
    order = sorted(counts, key=lambda symbol: (symbol != "C", symbol != "H", symbol))
    return "".join(
        symbol + (f"$_{{{counts[symbol]}}}$" if counts[symbol] > 1 else "") for symbol in order
    )


def _draw_bond(axes: Axes, ends: np.ndarray, colours: list[str], kind: int) -> None:
    """Single, double, triple or aromatic: one to three lines, each half in its atom's colour."""
    flat = ends[:, :2]
    along = flat[1] - flat[0]
    across = np.array([-along[1], along[0]]) / (np.linalg.norm(along) or 1.0)
    lines = {0: [0.0], 1: [-0.09, 0.09], 2: [-0.15, 0.0, 0.15], 3: [-0.08, 0.1]}[kind]
    for number, aside in enumerate(lines):
        start, end = flat + aside * across
        middle = (start + end) / 2
        style = (0, (1.6, 1.0)) if kind == 3 and number == 1 else "solid"
        width = 4.6 if len(lines) == 1 else 3.0
        if style == "solid":
            axes.plot(*zip(start, end, strict=True), color="#30343a", lw=width + 1.4, zorder=1)
        for half, colour in (((start, middle), colours[0]), ((middle, end), colours[1])):
            shade = "#c9c9c9" if colour == _ATOMS[1][1] else colour
            axes.plot(*zip(*half, strict=True), color=shade, lw=width, ls=style, zorder=1.1)


def _draw_atom(axes: Axes, place: np.ndarray, colour: str, radius: float, near: float) -> None:
    """A ball with a light on it, a little larger where it is near."""
    radius *= 0.9 + 0.2 * near
    base = np.array(to_rgb(colour))
    x, y = place.tolist()
    axes.add_patch(Circle((x, y), radius, fc=base * 0.78, ec="#30343a", lw=1.0, zorder=2 + near))
    for share in np.linspace(0.9, 0.1, 9):
        light = base * (0.8 + 0.2 * (1 - share)) + 0.28 * (1 - share) ** 2
        aside = 0.3 * (1 - share) * radius
        fill = np.clip(light, 0, 1)
        ball = Circle((x - aside, y + aside), radius * share, fc=fill, ec="none", zorder=2 + near)
        axes.add_patch(ball)


def _list_facts(axes: Axes, facts: Sequence[str]) -> None:
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.axis("off")
    for line, fact in enumerate(facts):
        name, _, value = fact.partition("\t")
        height = 0.95 - line * min(0.066, 0.8 / max(len(facts), 1))
        axes.text(0.0, height, name, va="top", color="#555555")
        axes.text(0.96, height, value, va="top", ha="right")


@plain
def image_graph(
    image: np.ndarray, labels: np.ndarray, data: Data, scale: float, title: str
) -> Figure:
    """An image, its superpixels with their outlines, and their graph over it."""
    figure = Figure(figsize=(9.6, 3.6), layout="constrained")
    panels = figure.subplots(1, 3)
    grey = {"cmap": "gray", "vmin": 0, "vmax": 255} if image.ndim == 2 else {}
    means = data.x.numpy()[labels].reshape(*labels.shape, -1)
    means = (255 * (means[:, :, 0] if image.ndim == 2 else means)).astype(np.uint8)
    for axes, shown, text in zip(
        panels,
        (image, means, image),
        (title, f"{data.num_nodes} superpixels", f"graph, {data.num_edges} edges"),
        strict=True,
    ):
        axes.imshow(shown, **grey)
        axes.set(xticks=[], yticks=[])
        axes.set_title(text)
        axes.spines[:].set_visible(False)
    for axis in (0, 1):
        _draw_outlines(panels[1], labels, axis)
    at = data.pos.double().numpy()[:, ::-1] / scale * max(labels.shape)
    segments = at[data.edge_index.T.numpy()]
    panels[2].add_collection(LineCollection(list(segments), colors="#3fb6e8", lw=0.5, alpha=0.7))
    size = 16 if len(at) < 100 else 11
    panels[2].scatter(*at.T, s=size, c="#f6c945", edgecolors="#222222", lw=0.4, zorder=3)
    return figure


def _draw_outlines(axes: Axes, labels: np.ndarray, axis: int) -> None:
    """Lines between pixels of different superpixels that are neighbours along one axis."""
    rows, columns = np.nonzero(np.diff(labels, axis=axis))
    ends = (
        [((c - 0.5, r + 0.5), (c + 0.5, r + 0.5)) for r, c in zip(rows, columns, strict=True)]
        if axis == 0
        else [((c + 0.5, r - 0.5), (c + 0.5, r + 0.5)) for r, c in zip(rows, columns, strict=True)]
    )
    axes.add_collection(LineCollection(ends, colors="#f6c945", lw=0.7))


@plain
def tour(data: Data, scale: float, title: str) -> Figure:
    """The points of a travelling salesman problem, their neighbours, and the tour."""
    figure = Figure(figsize=(5.6, 5.9), layout="constrained")
    axes = figure.subplots()
    pos = data.pos.double().numpy() / scale
    order = data.tour.numpy()
    edges = pos[data.edge_index.T.numpy()]
    axes.add_collection(LineCollection(list(edges), colors=_PALE, lw=0.35, alpha=0.5))
    axes.plot(*pos[[*order, order[0]]].T, color=_TOUR, lw=1.8, solid_joinstyle="round")
    axes.plot(*pos.T, "o", color=_LINE, ms=4.5 if len(pos) < 200 else 2.5, zorder=3)
    axes.set(aspect="equal", xticks=[], yticks=[], title=title)
    axes.spines[:].set_visible(False)
    return figure


@plain
def trajectories(pos: np.ndarray, charge: np.ndarray, asked: tuple[int, int], title: str) -> Figure:
    """Particles `[F, N, n]` with charges `[N]`: their paths, seen along their thinnest direction.

    The frames `asked` are those where the question begins and where the answer is.
    """
    figure = Figure(figsize=(6.4, 5.2), layout="constrained")
    axes = figure.subplots()
    points = pos.reshape(-1, pos.shape[2]) - pos.reshape(-1, pos.shape[2]).mean(axis=0)
    flat = (points @ np.linalg.svd(points, full_matrices=False)[2][:2].T).reshape(
        *pos.shape[:2], -1
    )
    if flat.shape[2] == 1:
        flat = np.concatenate([flat, np.zeros_like(flat)], axis=2)
    start, stop = asked
    for path, sign in zip(flat.transpose(1, 0, 2), charge, strict=True):
        colour = _CHARGE[int(np.sign(sign))]
        axes.plot(*path[: stop + 1].T, color=colour, lw=1.0, alpha=0.35)
        axes.plot(*path[start : stop + 1].T, color=colour, lw=2.4, solid_capstyle="round")
        axes.plot(*path[start], "o", color="white", markeredgecolor=colour, mew=2.0, ms=9)
        axes.plot(*path[stop], "o", color=colour, ms=10)
    for sign, text in ((1, "charge +1"), (-1, "charge −1")):
        axes.plot([], [], color=_CHARGE[sign], lw=2.4, label=text)
    axes.plot(
        [], [], "o", color="white", markeredgecolor="#555555", mew=2.0, ms=8, label="question"
    )
    axes.plot([], [], "o", color="#555555", ms=8, label="answer")
    axes.legend(loc="best")
    axes.set(aspect="equal", xticks=[], yticks=[], title=title)
    axes.spines[:].set_visible(False)
    axes.margins(0.08)
    return figure
