"""Graphs in three parts, and files in one call."""

import inspect
from collections import Counter
from pathlib import Path

import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from symgnn.data import Task, files, load_files, read, sample, splits
from symgnn.data.files._partition import divide, part_sizes
from symgnn.data.files._splitting import edge_lengths

FRACTIONS = st.sampled_from([(0.8, 0.1, 0.1), (0.5, 0.25, 0.25), (1.0, 0.0, 0.0), (0.7, 0.3, 0.0)])


@settings(deadline=None)
@given(st.lists(st.integers(0, 3), min_size=3, max_size=200), FRACTIONS, st.integers(0, 9))
def test_parts_are_stratified(labels: list[int], fractions: tuple, seed: int) -> None:
    parts = divide(labels, fractions, seed)
    assert sorted(index for part in parts for index in part) == list(range(len(labels)))
    assert [len(part) for part in parts] == part_sizes(len(labels), fractions)
    assert parts == divide(labels, fractions, seed)
    whole = Counter(labels)
    for part in parts:
        share = len(part) / len(labels)
        for label, count in Counter(labels[index] for index in part).items():
            assert abs(count - share * whole[label]) < 2, (label, count, share * whole[label])


@given(st.integers(3, 1000), FRACTIONS)
def test_sizes(count: int, fractions: tuple) -> None:
    sizes = part_sizes(count, fractions)
    assert sum(sizes) == count
    for size, fraction in zip(sizes, fractions, strict=True):
        assert (size > 0) == (fraction > 0)
        assert abs(size - fraction * count) <= 2


def test_other_seeds_are_other_splits() -> None:
    assert divide([0] * 50, (0.8, 0.1, 0.1), 0) != divide([0] * 50, (0.8, 0.1, 0.1), 1)


def test_edges_are_about_one_long() -> None:
    graphs = read(sample("molecules"), targets="targets.csv")
    before = [graph.pos.clone() for graph in graphs]
    found = splits(graphs)
    lengths = torch.cat([edge_lengths(graph) for graph in found.train])
    assert abs(float(lengths.median()) - 1) < 0.01
    assert all(torch.equal(a, graph.pos) for a, graph in zip(before, graphs, strict=True))
    first = found.train[0]
    (original,) = (graph for graph in graphs if graph.name == first.name)
    assert torch.allclose(first.pos, original.pos * found.scale)
    assert splits(graphs, scale=1.0).train[0].pos.equal(original.pos)


def test_new_files_are_read_in_the_same_form() -> None:
    found = splits(read(sample("molecules"), targets="targets.csv", radius=2.0))
    new = read(sample("molecules") / "water.xyz", **found.about["read"])[0]
    (old,) = (g for part in (found.train, found.validation, found.test) for g in part
              if g.name == "water")  # fmt: skip
    for name in ("pos", "x", "z", "edge_index"):
        assert torch.equal(new[name], old[name]), name


def test_coordinates_are_scaled_as_targets_too() -> None:
    pos = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    graphs = [Data(pos=pos, y=pos + 1) for _ in range(4)]
    found = splits(read(graphs, level="coordinates"), scale=0.5)
    assert torch.allclose(found.train[0].y, (pos + 1) * 0.5)


def test_graphs_of_your_own_need_a_task() -> None:
    pos = torch.zeros(2, 3)
    edge_index = torch.tensor([[0, 1], [1, 0]])
    graphs = [Data(pos=pos, edge_index=edge_index, y=torch.zeros(1, 1)) for _ in range(10)]
    found = splits(graphs, task=Task("graph", "regression", ("gap",)))
    assert [len(part) for part in (found.train, found.validation, found.test)] == [8, 1, 1]
    assert found.scale == 1.0  # no edge has a length
    with pytest.raises(ValueError, match="task: is not known; pass columns to `read`"):
        splits(graphs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fractions": (0.8, 0.1)}, r"fractions: are \[0\.8, 0\.1\]; give three that add up to 1"),
        ({"fractions": (0.8, 0.1, 0.2)}, r"fractions: are .*add up to 1"),
        ({"fractions": (0.0, 0.5, 0.5)}, r"fractions: are "),
        ({"scale": 0.0}, "scale: is 0.0; give a positive number"),
        ({"scale": float("nan")}, "scale: is nan; give a positive number"),
    ],
)
def test_wrong_options(options: dict, message: str) -> None:
    graphs = read(sample("molecules"), targets="targets.csv")
    with pytest.raises(ValueError, match=message):
        splits(graphs, **options)


def test_too_few() -> None:
    graphs = [Data(pos=torch.zeros(1, 3), y=torch.zeros(1, 1)) for _ in range(2)]
    with pytest.raises(ValueError, match="fractions: 2 graphs cannot be divided into 3 parts"):
        splits(read(graphs, level="graph"))


# ---------------------------------------------------------------- in one call


def test_options_as_in_a_file(tmp_path: Path) -> None:
    text = f"""
        path: {sample("meshes")}
        targets: targets.csv
        columns: [shape]
        fractions: [0.5, 0.25, 0.25]
        seed: 3
    """
    found = files.load(**yaml.safe_load(text))
    assert found.task.classes == ("box", "cone", "sphere", "torus")
    for part in (found.train, found.validation, found.test):
        assert len({int(graph.y) for graph in part}) >= 3
    assert found.about["seed"] == 3
    assert found.about["files"] == 13
    again = files.load(**yaml.safe_load(text))
    assert again.about == found.about
    plain = yaml.safe_load(yaml.safe_dump(found.about))  # nothing but plain values
    assert plain == found.about


def test_the_checksum_follows_the_content(tmp_path: Path) -> None:
    for name in "abcd":
        (tmp_path / f"{name}.csv").write_text("x,h\n0,1\n1,2\n")
    options = {"path": str(tmp_path), "columns": ["h"]}
    before = load_files(**options).about["sha256"]
    assert load_files(**options).about["sha256"] == before
    (tmp_path / "a.csv").write_text("x,h\n0,1\n1,3\n")
    assert load_files(**options).about["sha256"] != before


def test_a_wrong_option_names_the_nearest() -> None:
    with pytest.raises(
        ValueError, match="data: 'colums' is not an option of files; did you mean 'col"
    ):
        load_files(path=str(sample("meshes")), colums=["shape"])
    kinds = {p.kind for p in inspect.signature(load_files).parameters.values()}
    assert kinds == {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD}


def test_samples_by_name() -> None:
    assert (sample("sdf") / "molecules.sdf").is_file()
    with pytest.raises(ValueError, match="sample: 'mesh' is not known; did you mean 'meshes'"):
        sample("mesh")
