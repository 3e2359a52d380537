"""The sweep over what the paper leaves open."""

from pathlib import Path

import pytest
import torch
from rich.console import Console

from symgnn.data import Polytopes
from symgnn.data._polytope_sets import MATRICES, OFFSETS, Law
from symgnn.experiments import TABLES, run_readings, run_table
from symgnn.experiments import _polytope_training as polytope_training
from symgnn.experiments import _reading_sweep as reading_sweep
from symgnn.experiments._polytope_tables import PaperReading, Row
from symgnn.experiments._polytope_training import train_network
from symgnn.experiments._reading_sweep import label_of, laws_of, paper_rows, readings
from symgnn.report import markdown_readings, rich_table, write_report
from symgnn.store import write_json

QUIET = Console(quiet=True)


@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("n", [3, 5])
def test_laws_of_the_matrix_have_the_same_mu(matrix: str, n: int) -> None:
    generator = torch.Generator().manual_seed(1)
    for mu in (0.5, 3.0):
        maps = [Law("none", matrix).draw(n, mu, False, generator).matrix for _ in range(4000)]
        gram = torch.stack([a.T @ a for a in maps]) - torch.eye(n, dtype=torch.float64)
        norms = gram.flatten(1).norm(dim=1)
        # five standard errors of the mean, and 1 % of the scale
        assert abs(norms.mean() - mu) < 5 * norms.std() / 4000**0.5 + 0.01 * mu


def test_laws_of_offset_and_factor() -> None:
    generator = torch.Generator().manual_seed(0)
    maps = {
        name: [Law(name).draw(3, 0.0, True, generator) for _ in range(3000)] for name in OFFSETS
    }
    spread = {name: torch.stack([m.offset for m in found]).std() for name, found in maps.items()}
    assert spread["none"] == 0
    expected = {"normal": 1.0, "tripled": 3.0, "uniform": 3**-0.5}
    for name, deviation in expected.items():  # 9000 numbers: five standard errors are 0.04
        assert float(spread[name]) == pytest.approx(deviation, rel=0.04)
    factors = torch.tensor([m.factor for m in maps["normal"]])
    assert abs(factors.mean()) < 0.1
    assert abs(factors.std() - 1) < 0.07
    uniform = [Law(factor="uniform").draw(3, 0.0, True, generator).factor for _ in range(500)]
    assert min(uniform) >= 0.1
    assert max(uniform) <= 10
    for found in maps["normal"][:5]:
        assert torch.allclose(found.matrix.T @ found.matrix, torch.eye(3, dtype=torch.float64))


@pytest.mark.parametrize("field", ["offset", "matrix", "factor"])
def test_a_law_that_is_not_known(field: str) -> None:
    with pytest.raises(ValueError, match=rf"^{field}: 'nrmal' is not known"):
        Law(**{field: "nrmal"})


def test_marks_do_not_give_the_class_away() -> None:
    one = Polytopes(3, "orthogonal", 2, node_features="one marked")
    assert [float(graph.x.sum()) for graph in one] == [1.0] * 10
    half = Polytopes(3, "orthogonal", 2, node_features="half marked")
    assert [float(graph.x.mean()) for graph in half] == [0.5] * 10
    with pytest.raises(ValueError, match=r"^node_features: 'marked' is not known"):
        Polytopes(3, node_features="marked")


def test_the_paper_has_252_cells() -> None:
    rows = [row for table in TABLES.values() if table.paper for row in paper_rows(table)]
    assert 6 * len(rows) == 252
    assert len(readings()) == len(set(readings())) == 72


def test_only_gn_sees_offsets() -> None:
    assert list(laws_of(Row("GN", "sum"), "orthogonal")) == [f"{q} noise" for q in OFFSETS]
    assert len(laws_of(Row("GN", "sum"), "non-orthogonal mu=0.5")) == 12
    assert len(laws_of(Row("DGN", "sum"), "non-orthogonal mu=0.5")) == 3
    assert list(laws_of(Row("DGN", "sum"), "orthogonal")) == ["none noise"]
    assert label_of(Row("GN", "sum"), "train", Law("tripled", "stretch")) == "none noise"


def test_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"seeds": 2, "epochs": 2, "copies": {3: 2}, "console": QUIET}
    results = run_readings(tmp_path, tables=["polytopes-3d-map"], **options)  # type: ignore[arg-type]
    monkeypatch.setattr(reading_sweep, "run_row", lambda *_: pytest.fail("it was run again"))
    again = run_readings(tmp_path, tables=["polytopes-3d-map"], **options)  # type: ignore[arg-type]
    assert again["readings"] == results["readings"]
    assert [r["distance"] for r in results["readings"]] == sorted(
        r["distance"] for r in results["readings"]
    )
    best = results["readings"][0]
    assert best["cells"] == 36
    assert sum(best["cells_by_kind"].values()) == 36
    # by hand: DGN has one part, SDGN one for each alpha
    total = sum(
        abs(by_law[f"none {best['matrix'] if 'non' in column else 'noise'}"]["mean"] - theirs)
        for part in results["rows"]
        if part["scaling"] in (None, best["scaling"])
        for column, by_law in part["cells"].items()
        for theirs in [next(iter(by_law.values()))["paper_mean"]]
    )
    assert best["distance"] == pytest.approx(total)
    rich_table(results)
    assert "Each choice alone" in write_report(results, tmp_path).read_text()
    assert markdown_readings(results).count("| alpha: ") == 3


def test_the_best_reading_of_a_sweep(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    reading = PaperReading(Law("uniform", "stretch"), 2.0, True)
    write_json(file, {"readings": [reading.key, PaperReading().key]})
    assert PaperReading.best_of(file) == reading
    file.write_text("{}")
    with pytest.raises(ValueError, match=r"^--reading: .* run that first$"):
        PaperReading.best_of(file)


def test_trained_networks_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep and the tables train a network once; another setting trains it again."""
    calls = []
    real = polytope_training.train_row

    def counted(*args: object, **options: object) -> object:
        calls.append(args)
        return real(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(polytope_training, "train_row", counted)
    options = {"seeds": 2, "epochs": 3, "copies": 2, "rows": [Row("SDGN", "sum")]}
    found = [
        run_table(
            TABLES["polytopes-3d"],
            tmp_path / str(k),
            trained=tmp_path / "trained",
            console=QUIET,
            **{**options, "epochs": epochs},  # type: ignore[arg-type]
        )
        for k, epochs in enumerate((3, 3, 4))
    ]
    assert len(calls) == 2
    first, second = (each["rows"][0] for each in found[:2])
    assert (first["cells"], first["curve"]) == (second["cells"], second["curve"])
    (file,) = (tmp_path / "trained" / "3d").iterdir()
    file.write_bytes(file.read_bytes()[:-100])  # a damaged file is trained again
    shown: list[int] = []
    train_network(
        Row("SDGN", "sum"),
        Polytopes(3),
        3,
        2,
        4,
        lambda epoch, _: shown.append(epoch),
        scaling=PaperReading().scaling,
        kept=file,
    )
    assert len(calls) == 3
    assert shown == [0, 1, 2, 3]
