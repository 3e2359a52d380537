"""Sets of graphs whose targets have a known symmetry.

Each set is a kind of graph (random clouds in 2-d and 3-d, molecules, meshes in 3-d and
triangulations in 2-d) and a rule for the target. Graphs differ in place, direction, size and
shape, so that every kind of transformation that matters is seen in the data.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy.spatial import Delaunay, cKDTree
from torch_geometric.data import Data

SHAPES = ("cloud-2d", "cloud-3d", "molecule", "mesh-3d", "mesh-2d", "tree-3d")
RULES = (
    "pair distances",
    "angles",
    "kappa",
    "heights",
    "signed volumes",
    "edge lengths",
    "torsion angles",
)
EVERY = (
    *("permutation", "translation", "rotation", "reflection", "dilation", "inversion"),
    *("special-conformal", "affine", "torsion", "flex", "redrawing"),
)
_E = {"permutation", "translation", "rotation", "reflection"}
#: What each rule keeps, of all kinds.
KEPT = {
    "pair distances": _E,
    "angles": _E | {"dilation", "torsion", "redrawing"},
    "kappa": _E | {"dilation", "inversion", "special-conformal", "torsion"},
    "heights": {"permutation"},
    "signed volumes": _E - {"reflection"},
    "edge lengths": _E | {"torsion", "flex"},
    "torsion angles": _E | {"dilation", "redrawing"},
}


def kept_by(shape: str, rule: str) -> set[str]:
    """What a rule keeps on a shape: in the plane, affine maps keep the side of an edge."""
    flat = shape.endswith("2d") and rule == "torsion angles"
    return KEPT[rule] | {"affine"} if flat else KEPT[rule]


def planted(shape: str, rule: str, count: int, seed: int, noise: float = 0.1) -> list[Data]:
    """Graphs of a shape with targets of a rule, with noise of so many deviations."""
    rng = np.random.default_rng([seed, SHAPES.index(shape), RULES.index(rule)])
    graphs = [_graph(shape, rng, k) for k in range(count)]
    rate = rng.uniform(0.8, 2.0)  # how fast the target goes with what it is made of
    values = np.array([_value(rule, graph, rate) for graph in graphs])
    values = (values - values.mean()) / values.std()
    values = values + noise * rng.standard_normal(count)
    for graph, value in zip(graphs, values, strict=True):
        graph.y = torch.tensor([[value]])
    return graphs


def _graph(shape: str, rng: np.random.Generator, number: int) -> Data:
    n = 2 if shape.endswith("2d") else 3
    x, edges = _MAKERS[shape](rng, n)
    types = np.zeros(len(x), dtype=int)
    types[rng.permutation(len(x))[: n + 1]] = np.arange(1, n + 2)  # marked nodes
    rotation = np.linalg.qr(rng.standard_normal((n, n)))[0]
    size = math.exp(0.4 * rng.standard_normal())
    x = size * (x - x.mean(0)) @ rotation.T + rng.standard_normal(n)
    pairs = torch.tensor(np.array(sorted(edges)).T)
    return Data(
        pos=torch.tensor(x),
        edge_index=torch.cat([pairs, pairs.flip(0)], 1),
        x=torch.nn.functional.one_hot(torch.tensor(types), n + 2).double(),
    )


def _cloud(rng: np.random.Generator, n: int) -> tuple[np.ndarray, set[tuple[int, int]]]:
    """Random points, each joined to its two nearest, and the parts to each other."""
    x = rng.standard_normal((int(rng.integers(10, 15)), n))
    return x, _nearest(x, 2)


def _nearest(x: np.ndarray, k: int) -> set[tuple[int, int]]:
    import networkx as nx

    near = cKDTree(x).query(x, k + 1)[1][:, 1:]
    graph = nx.Graph((i, int(j)) for i, row in enumerate(near) for j in row)
    while not nx.is_connected(graph):
        first, *rest = (sorted(part) for part in nx.connected_components(graph))
        other = sorted(node for part in rest for node in part)
        gaps = np.linalg.norm(x[first][:, None] - x[other][None], axis=2)
        a, b = np.unravel_index(gaps.argmin(), gaps.shape)
        graph.add_edge(first[a], other[b])
    return {(min(e), max(e)) for e in graph.edges}


def _tree(rng: np.random.Generator, n: int) -> tuple[np.ndarray, set[tuple[int, int]]]:
    """A random tree of nodes of degree at most 4 with edges of about the same length."""
    x, edges, degree = [np.zeros(n)], set(), [0]
    for new in range(1, int(rng.integers(9, 13))):
        free = [k for k in range(len(x)) if degree[k] < 4]
        old = int(rng.choice(free))
        step = rng.standard_normal(n)
        x.append(x[old] + rng.uniform(0.7, 1.3) * step / np.linalg.norm(step))
        edges.add((old, new))
        degree[old] += 1
        degree.append(1)
    return np.array(x), edges


def _mesh2(rng: np.random.Generator, n: int) -> tuple[np.ndarray, set[tuple[int, int]]]:
    """A triangulation of random points."""
    x = rng.uniform(-1.5, 1.5, (int(rng.integers(10, 14)), n))
    rows = Delaunay(x).simplices
    sides = [(int(row[a]), int(row[b])) for row in rows for a, b in ((0, 1), (0, 2), (1, 2))]
    return x, {(min(side), max(side)) for side in sides}


def _mesh3(rng: np.random.Generator, n: int) -> tuple[np.ndarray, set[tuple[int, int]]]:
    """A distorted sheet of squares in space."""
    rows, columns = int(rng.integers(3, 5)), int(rng.integers(3, 5))
    grid = np.array([(i, j, 0.0) for i in range(rows) for j in range(columns)])
    x = grid + 0.35 * rng.standard_normal(grid.shape)
    number = lambda i, j: i * columns + j  # noqa: E731
    edges = {(number(i, j), number(i, j + 1)) for i in range(rows) for j in range(columns - 1)}
    edges |= {(number(i, j), number(i + 1, j)) for i in range(rows - 1) for j in range(columns)}
    return x, edges


_SMILES = [
    *("CCCCO", "CCC(C)N", "CC(=O)OC", "CCOCC", "NCCO", "CC(C)CO", "CCC(=O)N", "OCC(O)C"),
    *("CNCCO", "CCSC", "CC(F)CO", "C1CC1CO", "CC(=O)NC", "CCCC#N", "COCCO", "CC(N)C=O"),
    *("CCNC(C)C", "C=CCCO", "CC(C)(C)O", "OC1CCC1"),
]


def _molecule(rng: np.random.Generator, n: int) -> tuple[np.ndarray, set[tuple[int, int]]]:
    """A small molecule with its hydrogens by RDKit, its coordinates shaken a little."""
    from rdkit import Chem
    from rdkit.Chem import AllChem

    molecule = Chem.AddHs(Chem.MolFromSmiles(_SMILES[int(rng.integers(len(_SMILES)))]))
    seed = int(rng.integers(1, 2**31 - 1))
    assert AllChem.EmbedMolecule(molecule, randomSeed=seed) == 0
    x = molecule.GetConformer().GetPositions()
    pairs = [(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in molecule.GetBonds()]
    edges = {(min(pair), max(pair)) for pair in pairs}
    return x + 0.1 * rng.standard_normal(x.shape), edges


_MAKERS = {
    "cloud-2d": _cloud,
    "cloud-3d": _cloud,
    "molecule": _molecule,
    "mesh-3d": _mesh3,
    "mesh-2d": _mesh2,
    "tree-3d": _tree,
}


def _value(rule: str, graph: Data, rate: float) -> float:
    """The target of a graph, written in loops and on its own."""
    x, n = graph.pos.numpy(), graph.pos.shape[1]
    near: list[list[int]] = [[] for _ in x]
    for source, target in graph.edge_index.T.tolist():
        near[target].append(source)
    edges = [(i, j) for i in range(len(x)) for j in near[i] if i < j]
    if rule == "pair distances":
        all_pairs = [(i, j) for i in range(len(x)) for j in range(i)]
        return float(np.mean([np.sin(rate * np.linalg.norm(x[i] - x[j])) for i, j in all_pairs]))
    if rule == "edge lengths":
        return float(np.mean([np.sin(rate * np.linalg.norm(x[i] - x[j])) for i, j in edges]))
    if rule == "heights":
        return float(np.mean(np.sin(rate * x[:, -1])))
    if rule == "signed volumes":
        corners = x[[int(torch.argmax(graph.x[:, k])) for k in range(1, n + 2)]]
        volume = float(np.linalg.det(corners[1:] - corners[0]))
        return math.copysign(abs(volume) ** (1 / n), volume)
    if rule == "torsion angles":
        return _torsions(x, near, edges)
    values = []
    for i, around in enumerate(near):
        rays = [x[j] - x[i] for j in around]
        of_vertex = []
        for a in range(len(rays)):
            for b in range(a):
                lengths = np.linalg.norm(rays[a]), np.linalg.norm(rays[b])
                if rule == "angles":
                    cosine = np.clip(rays[a] @ rays[b] / np.prod(lengths), -1, 1)
                    of_vertex.append(np.cos(rate * np.arccos(cosine)))
                else:
                    of_vertex.append(np.linalg.norm(rays[a] - rays[b]) / np.prod(lengths))
        if rule == "kappa" and of_vertex:
            of_vertex = np.exp(-rate * np.array(of_vertex) / np.mean(of_vertex)).tolist()
        if rule == "angles" or len(of_vertex) > 1:
            values += of_vertex
    return float(np.mean(values)) if values else 0.0


def _torsions(x: np.ndarray, near: list[list[int]], edges: list[tuple[int, int]]) -> float:
    """The mean over chains of the cosine of the dihedral angle."""
    values = []
    for i, k in edges:
        axis = (x[k] - x[i]) / np.linalg.norm(x[k] - x[i])
        for j in near[i]:
            for l in near[k]:
                if len({i, j, k, l}) < 4:
                    continue
                one, other = x[j] - x[i], x[l] - x[k]
                one, other = one - (one @ axis) * axis, other - (other @ axis) * axis
                values.append(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))
    return float(np.mean(values)) if values else 0.0
