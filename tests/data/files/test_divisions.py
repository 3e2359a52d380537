"""Splits by column, group and scaffold, and folds: never a graph in two parts."""

from collections import Counter
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from symgnn.data import Splits, Task, folds, load_files, read, splits
from symgnn.data.files._partition import divide_groups, divide_groups_folds, part_sizes
from symgnn.data.files._scaffolds import scaffold

SMILES = ["c1ccccc1", "Cc1ccccc1", "CCc1ccccc1", "C1CCCCC1", "CC1CCCCC1", "CCO", "CC", "C1CC1"]
TASK = Task("graph", "regression", ("gap",))


def molecules(folder: Path, repeat: int = 1, **columns: list) -> Path:
    """A CSV of SMILES, a target and further columns, a row per molecule."""
    rows = [",".join(["name", "smiles", "gap", *columns])]
    for k, smiles in enumerate(SMILES * repeat):
        rows.append(",".join(map(str, [f"m{k}", smiles, k / 2, *(c[k] for c in columns.values())])))
    path = folder / "molecules.csv"
    path.write_text("\n".join(rows))
    return path


def points(count: int, **values: list) -> list[Data]:
    pos, edges = torch.eye(3), torch.tensor([[0, 1, 2], [1, 2, 0]])
    graphs = [Data(pos=pos, edge_index=edges, y=torch.full((1, 1), 1.0 * k)) for k in range(count)]
    for name, each in values.items():
        for graph, value in zip(graphs, each, strict=True):
            graph[name] = value
    return graphs


def parts(found: Splits) -> list[list[str]]:
    return [[g.name for g in part] for part in (found.train, found.validation, found.test)]


def test_a_column_names_the_parts(tmp_path: Path) -> None:
    column = ["train", "Train", "val", "test", "training", "validation", "test", "train"]
    path = molecules(tmp_path, part=column)
    expected = [["m0", "m1", "m4", "m7"], ["m2", "m5"], ["m3", "m6"]]
    assert parts(splits(read(path, columns=["gap"]), by="column", column="part")) == expected
    found = load_files(path=str(path), columns="gap", split={"column": "part"})
    assert parts(found) == expected
    assert found.about["split"] == {"by": "column", "column": "part"}


def test_the_column_may_be_beside_the_targets(tmp_path: Path) -> None:
    """Without `columns` every other column is a target, but not the one that divides."""
    for k in range(4):
        (tmp_path / f"m{k}.xyz").write_text(f"2\n\nH 0 0 0\nH 0 0 0.7{k}\n")
    names = ["train", "train", "validation", "test"]
    rows = [f"m{k},{k}.5,{name}" for k, name in enumerate(names)]
    (tmp_path / "targets.csv").write_text("\n".join(["name,gap [eV],part", *rows]))
    given = {"path": str(tmp_path), "targets": "targets.csv"}
    found = load_files(**given, split={"column": "part"})
    assert found.task.targets == ("gap",)
    assert parts(found) == [["m0", "m1"], ["m2"], ["m3"]]


def test_groups_of_a_file_of_nodes_are_no_features(tmp_path: Path) -> None:
    rows = [f"{g},{n},{g * n},{g // 2},{g + n}" for g in range(8) for n in range(3)]
    (tmp_path / "nodes.csv").write_text("\n".join(["graph,x,y,patient,charge", *rows]))
    found = load_files(
        path=str(tmp_path), columns="charge", split={"by": "group", "column": "patient"}, k=2
    )
    assert found.train[0].get("x") is None
    whole = {frozenset(int(name) // 2 for name in part) for part in parts(found)}
    assert len(set().union(*whole)) == sum(map(len, whole)) == 4


KEYS = st.lists(st.integers(0, 12), min_size=6, max_size=80)
SHARES = st.sampled_from([(0.8, 0.1, 0.1), (0.6, 0.2, 0.2), (0.7, 0.3, 0.0)])


@settings(deadline=None)
@given(KEYS, SHARES, st.one_of(st.none(), st.integers(0, 5)))
def test_groups_stay_whole(keys: list[int], shares: tuple, seed: int | None) -> None:
    counts, wanted = Counter(keys), part_sizes(len(keys), shares)
    if len(counts) < sum(share > 0 for share in shares) or max(counts.values()) > max(wanted):
        with pytest.raises(ValueError, match=r"^(column: there are|fractions: the group)"):
            divide_groups(keys, shares, seed)
        return
    found = divide_groups(keys, shares, seed)
    assert sorted(i for part in found for i in part) == list(range(len(keys)))
    assert found == divide_groups(keys, shares, seed)
    owners = [{keys[i] for i in part} for part in found]
    assert sum(map(len, owners)) == len(set(keys))
    assert [bool(part) for part in found] == [share > 0 for share in shares]


@settings(deadline=None)
@given(KEYS, st.integers(2, 6), st.integers(0, 5))
def test_groups_stay_whole_in_folds(keys: list[int], k: int, seed: int) -> None:
    counts = Counter(keys)
    if len(counts) < k or 2 * max(counts.values()) > len(keys):
        with pytest.raises(ValueError, match=r"^(k: is|column: the group)"):
            divide_groups_folds(keys, k, seed)
        return
    found = divide_groups_folds(keys, k, seed)
    assert len(found) == k
    assert all(found)
    assert sorted(i for fold in found for i in fold) == list(range(len(keys)))
    owners = [{keys[i] for i in fold} for fold in found]
    assert sum(map(len, owners)) == len(set(keys))


def test_sizes_come_near_the_fractions() -> None:
    keys = [k // 5 for k in range(100)]  # 20 groups of 5
    assert [len(part) for part in divide_groups(keys, (0.8, 0.1, 0.1), 3)] == [80, 10, 10]
    assert divide_groups(keys, (0.8, 0.1, 0.1), 3) != divide_groups(keys, (0.8, 0.1, 0.1), 4)


def test_scaffolds(tmp_path: Path) -> None:
    assert scaffold("CC(=O)Oc1ccccc1C(=O)O") == "c1ccccc1"
    assert scaffold("CCO") == ""
    graphs = read(molecules(tmp_path, 2), columns=["gap"])
    found = splits(graphs, by="scaffold", fractions=(0.6, 0.2, 0.2))
    owners = [{scaffold(SMILES[int(n[1:]) % 8]) for n in part} for part in parts(found)]
    # benzene has 6 molecules; cyclohexane and those without a ring have 4; cyclopropane has 2
    assert owners == [{"c1ccccc1", ""}, {"C1CCCCC1"}, {"C1CC1"}]
    assert parts(splits(graphs, by="scaffold", fractions=(0.6, 0.2, 0.2), seed=7)) == parts(found)
    backwards = graphs.take(range(len(graphs))[::-1])
    again = splits(backwards, by="scaffold", fractions=(0.6, 0.2, 0.2))
    assert [sorted(part) for part in parts(again)] == [sorted(part) for part in parts(found)]
    each = folds(graphs, k=3, by="scaffold", validation=0.3)
    tests = [{scaffold(SMILES[int(g.name[1:]) % 8]) for g in fold.test} for fold in each]
    assert sum(map(len, tests)) == 4


def test_scaffolds_of_an_sdf() -> None:
    from symgnn.data import sample

    graphs = read(sample("sdf"), columns=["dipole"])
    assert all(graphs.metadata["smiles"])
    with pytest.raises(ValueError, match=r"^by: scaffold needs molecules with bonds"):
        splits(read(sample("molecules"), targets="targets.csv"), by="scaffold")


@pytest.mark.parametrize("by", ["random", "group", "scaffold", "column"])
def test_every_graph_is_tested_once(by: str, tmp_path: Path) -> None:
    patients, numbers = [k % 7 for k in range(32)], [k % 4 for k in range(32)]
    path = molecules(tmp_path, 4, patient=patients, number=numbers)
    column = {"group": "patient", "column": "number"}.get(by)
    graphs = read(path, columns=["gap"])
    found = folds(graphs, k=4, by=by, column=column, validation=0.2, seed=1)
    names = [name for fold in found for name in parts(fold)[2]]
    assert sorted(names) == sorted(graphs.names)
    for number, fold in enumerate(found, 1):
        three = [set(part) for part in parts(fold)]
        assert all(three)
        assert sum(map(len, three)) == len(set().union(*three)) == 32
        assert fold.about["fold"] == number
    if by == "group":
        for fold in found:
            owners = [{patients[int(name[1:])] for name in part} for part in parts(fold)]
            assert sum(map(len, owners)) == 7
    one = load_files(
        path=str(path),
        columns="gap",
        split={"by": by, "column": column, "validation": 0.2},
        folds=4,
        fold=2,
        seed=1,
    )
    assert parts(one) == parts(found[1])


def test_folds_are_stratified() -> None:
    graphs = points(20)
    for k, graph in enumerate(graphs):
        graph.y = torch.tensor([int(k % 4 == 0)])
    task = Task("graph", "classification", ("kind",), classes=("no", "yes"))
    for fold in folds(graphs, k=5, task=task, validation=0.25):
        assert sum(int(graph.y) for graph in fold.test) == 1
        assert sum(int(graph.y) for graph in fold.validation) == 1


def test_attributes_of_graphs_divide() -> None:
    graphs = points(6, patient=["a", "a", "b", "b", "c", "c"], number=list(range(6)))
    found = splits(graphs, task=TASK, by="group", column="patient", fractions=(0.34, 0.33, 0.33))
    assert sorted(g.patient for g in found.test) in (["a", "a"], ["b", "b"], ["c", "c"])


def test_frames_of_a_trajectory_are_one_group(tmp_path: Path) -> None:
    for name in "abcd":
        frames = [f"2\nenergy={k}.0\nH 0 0 0\nH 0 0 0.7{k}\n" for k in range(5)]
        (tmp_path / f"{name}.xyz").write_text("".join(frames))
    found = splits(read(tmp_path, columns=["energy"]), by="group", column="file")
    owners = [{name[0] for name in part} for part in parts(found)]
    assert sorted(map(len, owners)) == [1, 1, 2]
    assert sum(map(len, owners)) == 4


WRONG = [
    ({"by": "grup", "column": "patient"}, r"^by: 'grup' is not a way .*did you mean 'group'"),
    ({"by": "group"}, r"^column: is missing; by: group needs"),
    ({"by": "scaffold", "column": "patient"}, r"^column: is 'patient', which by: scaffold"),
    ({"by": "group", "column": "patien"}, r"^column: 'patien' is not .*did you mean 'patient'"),
    ({"by": "group", "column": "one"}, r"^column: there are 1 groups \(same\), which cannot be"),
    ({"by": "group", "column": "large"}, r"^fractions: the group 'a' has 14 of 16 graphs, but the"),
    ({"by": "column", "column": "patient"}, r"^column: graph 0 \(m0\) has '0' in 'patient'; give"),
    ({"column": "two"}, r"^column: 'two' names no graph 'validation'"),
    ({"column": "two", "fractions": (0.8, 0.1, 0.1)}, r"^fractions: the column defines"),
    ({"by": "group", "column": "holes"}, r"^column: graph 3 \(m3\) has no 'holes', or several"),
]


@pytest.mark.parametrize(("options", "said"), WRONG)
def test_what_cannot_be_divided(options: dict, said: str, tmp_path: Path) -> None:
    columns = {
        "patient": [k % 5 for k in range(16)],
        "one": ["same"] * 16,
        "large": ["a"] * 14 + ["b", "c"],
        "two": ["train"] * 12 + ["test"] * 4,
        "holes": ["a", "b", "c", "", *"defghijklmno"],
    }
    graphs = read(molecules(tmp_path, 2, **columns), columns=["gap"])
    with pytest.raises(ValueError, match=said) as caught:
        splits(graphs, **{"fractions": None, **options})
    assert "\n" not in str(caught.value)
    if "fractions" not in options and "patien" not in str(options.get("column")):
        shares = {} if options.get("column") == "two" else {"fractions": (0.6, 0.2, 0.2)}
        with pytest.raises(ValueError, match=r"^(split\.|fractions)"):
            load_files(path=str(tmp_path), columns="gap", split=options, **shares)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"folds": 1, "fold": 1}, "^folds: is 1; give a whole number of at least 2"),
        ({"folds": 3, "fold": 4}, "^fold: is 4; give a number from 1 to 3"),
        ({"folds": 3}, "^fold: is missing"),
        ({"fold": 3}, "^folds: is missing"),
        ({"folds": 30, "fold": 1}, "^folds: is 30, but there are 8 graphs"),
        ({"folds": 3, "fold": 1, "split": "scafold"}, "^split.by: 'scafold' .*did you mean"),
        ({"folds": 3, "fold": 1, "split": {"validation": 2}}, "^split.validation: is 2; give"),
        ({"folds": 3, "fold": 1, "fractions": [1, 0, 0]}, "^fractions: folds define the parts"),
        ({"split": {"validation": 0.2}}, "^split.validation: is for folds"),
        ({"split": {"colum": "x"}}, "^split: 'colum' is not a key of split; did you mean"),
        ({"split": {"column": "x"}}, "^split.column: 'x' is not a column of the files"),
        ({"split": 3}, "^split: is 3; give"),
    ],
)
def test_options_of_a_config(options: dict, said: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        load_files(path=str(molecules(tmp_path)), columns="gap", **options)
    assert "\n" not in str(caught.value)
