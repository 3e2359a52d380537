"""Targets from a CSV."""

from pathlib import Path

import pytest
import torch

from symgnn.data import Graphs, read, sample

STRUCTURES = ("a", "b", "c")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for index, name in enumerate(STRUCTURES):
        (tmp_path / f"{name}.csv").write_text("x,y\n" + f"0,{index}\n1,0\n2,2\n")
    return tmp_path


def targets(folder: Path, text: str, **options: object) -> Graphs:
    (folder / "targets.csv").write_text(text)
    return read(folder, targets="targets.csv", **options)


@pytest.mark.parametrize("order", ["abc", "cab"])
@pytest.mark.parametrize("ending", ["", ".csv"])
def test_rows_are_found_by_name(folder: Path, order: str, ending: str) -> None:
    rows = "".join(f"{name}{ending},{ord(name)},{-ord(name)}\n" for name in order)
    graphs = targets(folder, f"name,gap [eV],mass\n{rows}")
    assert graphs.names == ["a", "b", "c"]
    assert torch.cat([graph.y for graph in graphs]).tolist() == [[97, -97], [98, -98], [99, -99]]
    assert graphs.task.level == "graph"
    assert (graphs.task.targets, graphs.task.units) == (("gap", "mass"), ("eV", ""))
    only = targets(folder, f"name,gap [eV],mass\n{rows}", columns="mass")
    assert only.task.targets == ("mass",)


def test_a_path_of_its_own(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("other") / "gaps.csv"
    path.write_text("compound;gap\na;1\nb;2\nc;3\n")
    assert [graph.y.item() for graph in read(folder, targets=path, id="compound")] == [1, 2, 3]


def test_classes(folder: Path) -> None:
    graphs = targets(folder, "name,kind\na,wet\nb,dry\nc,wet\n")
    assert (graphs.task.kind, graphs.task.classes) == ("classification", ("dry", "wet"))
    assert [graph.y.tolist() for graph in graphs] == [[1], [0], [1]]
    numbers = targets(folder, "name,kind\na,10\nb,2\nc,10\n", kind="classification")
    assert numbers.task.classes == ("2", "10")
    assert graphs[0].y.dtype == torch.int64


def test_nodes(folder: Path) -> None:
    rows = [f"{name},{node},{ord(name) + node}\n" for name in "cab" for node in (2, 0, 1)]
    graphs = targets(folder, "name,node,charge\n" + "".join(rows))
    assert graphs.task.level == "node"
    assert graphs[1].y.tolist() == [[98], [99], [100]]


def test_coordinates(folder: Path) -> None:
    rows = [f"{name},{node},{node},{10 * node}\n" for name in "abc" for node in range(3)]
    text = "name,node,x1,y1\n" + "".join(rows)
    graphs = targets(folder, text, level="coordinates", scale=2.0)
    assert graphs.task.level == "coordinates"
    assert graphs[0].y.tolist() == [[0, 0], [2, 20], [4, 40]]
    assert graphs[0].pos[2].tolist() == [4, 4]
    with pytest.raises(ValueError, match="a has 1 targets for each node, but 2 coordinates"):
        targets(folder, text, level="coordinates", columns=["x1"])


FULL = "a,1\nb,2\nc,3\n"
WRONG = {
    "missing": ("name,gap\na,1\nb,2\n", r"targets\.csv: has no row for 'c' \(.*c\.csv\); or pass "),
    "missing two": ("name,gap\na,1\n", r"no row for 'b' .*\(and 1 more like it\)"),
    "extra": (f"name,gap\n{FULL}d,4\n", r"targets\.csv, row 5, column 'name': there is no .* 'd'"),
    "duplicate": (f"name,gap\n{FULL}a,4\n", r"targets\.csv, row 5, column 'name': 'a' is already"),
    "text": ("name,gap\na,1\nb,two\nc,3\n", r"row 3, column 'gap' \(b\): 'two' is not a n"),
    "comma": ("name;gap\na;1\nb;2,5\nc;3\n", r"row 3, column 'gap' \(b\): '2,5' is not a"),
    "empty": ("name,gap\na,1\nb,\nc,3\n", r"row 3, column 'gap' \(b\): is empty; give a"),
    "nan": ("name,gap\na,1\nb,nan\nc,3\n", r"row 3, column 'gap' \(b\): is nan; give a"),
    "no id": (f"nmae,gap\n{FULL}", r"id: 'name' is not a column .*; did you mean 'nmae'"),
    "empty id": ("name,gap\na,1\n,2\nc,3\n", r"targets\.csv, row 3, column 'name': is empty"),
    "no column": ("name\na\nb\nc\n", r"targets\.csv: has no columns besides name"),
    "ragged": ("name,gap\na,1\nb\nc,3\n", r"targets\.csv, row 3: has 1 cells, but the header"),
    "no header": ("", r"targets\.csv: has no header"),
    "mixed": ("name,gap,kind\na,1,u\nb,2,v\nc,3,u\n", r"columns: kind is text; name one class, "
              r"such as columns=\['kind'\], or numbers only, such as columns=\['gap'\]"),
    "one class": ("name,kind\na,u\nb,u\nc,u\n", r"columns: kind has only the classes \['u'\]"),
}  # fmt: skip
SKIPPED = {"missing": "ab", "missing two": "a", "extra": "abc"}
SKIPPED |= dict.fromkeys(("text", "comma", "empty", "nan"), "ac")


@pytest.mark.parametrize("case", WRONG)
def test_wrong_tables(folder: Path, case: str) -> None:
    text, message = WRONG[case]
    with pytest.raises(ValueError, match=message) as error:
        targets(folder, text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("case", WRONG)
def test_only_single_structures_are_skipped(folder: Path, case: str) -> None:
    text, message = WRONG[case]
    if case not in SKIPPED:
        with pytest.raises(ValueError, match=message):
            targets(folder, text, on_error="skip")
        return
    with pytest.warns(UserWarning, match="left out"):
        graphs = targets(folder, text, on_error="skip")
    assert "".join(graphs.names) == SKIPPED[case]
    assert graphs.skipped


def test_wrong_column_names_the_nearest(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"columns: 'Gap' is not a column .*did you mean 'gap'"):
        targets(folder, f"name,gap\n{FULL}", columns=["Gap"])
    with pytest.raises(ValueError, match=r"columns: 'zzz' is not a column .*; choose from name"):
        targets(folder, f"name,gap\n{FULL}", columns=["zzz"])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a,0,1\na,1,2\n", r"targets\.csv: has no row for node 2 of 'a'"),
        ("a,0,1\na,1,2\na,3,2\n", r"row 4, column 'node': '3' is no node of 'a', which has 0 to 2"),
        ("a,0,1\na,x,2\n", r"row 3, column 'node': 'x' is no node"),
        ("a,0,1\na,1,2\na,1,2\n", r"row 4, column 'node': 1 is already in row 3"),
    ],
)
def test_wrong_nodes(folder: Path, rows: str, message: str) -> None:
    for name in "bc":
        (folder / f"{name}.csv").unlink()
    with pytest.raises(ValueError, match=message):
        targets(folder, f"name,node,charge\n{rows}")


def test_targets_of_edges_are_not_in_a_table_by_name(folder: Path) -> None:
    with pytest.raises(ValueError, match="level: targets of edges come from the file of edges"):
        targets(folder, f"name,gap\n{FULL}", level="edge")


def test_no_targets() -> None:
    graphs = read(sample("meshes"))
    assert graphs.task is None
    assert all(graph.y is None for graph in graphs)
    assert repr(graphs) == "12 graphs of 8 to 50 nodes, in 3 dimensions"
