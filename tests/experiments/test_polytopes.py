"""The polytope experiments, small."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from symgnn.cli import main
from symgnn.data import SETS, Polytopes, polytopes
from symgnn.experiments import TABLES, Local, Row, run_efficiency, run_marked, run_table
from symgnn.experiments import _resume as resume
from symgnn.experiments import _tables as tables
from symgnn.experiments._data_efficiency import Samples, judged
from symgnn.experiments._paper import cell
from symgnn.experiments._paper_verdicts import difference_error, kind_of, verdict
from symgnn.experiments._polytope_accuracy import keeps, known_train, sampling_deviation
from symgnn.experiments._polytope_training import network
from symgnn.report import write_report
from symgnn.store import write_json

QUIET = Console(quiet=True)
TABLE = TABLES["polytopes-3d"]


def small(out: Path, *rows: Row, **options: object) -> dict:
    settings = {"seeds": 2, "epochs": 3, "copies": 2, **options}
    return run_table(TABLE, out, rows=rows or None, console=QUIET, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", TABLES)
def test_every_row_of_the_paper_is_a_row_of_ours(name: str) -> None:
    table = TABLES[name]
    ours = {(row.block, row.aggregation, row.coordinate_map) for row in table.rows}
    for row in tables.paper.tables()[table.paper]["rows"] if table.paper else ():
        key = (row["block"], row["aggregation"], row["coordinate_map"] or "identity")
        assert key in ours
        assert cell(table.paper, *key, "orthogonal")["mean"] is not None


def test_sets_are_seeded_and_transform_as_named() -> None:
    plain = Polytopes(3, dtype=torch.float64)
    for name in SETS:
        first, again, other = (
            Polytopes(3, name, 3, seed=s, dtype=torch.float64) for s in (0, 0, 1)
        )
        assert torch.equal(first[0].pos, again[0].pos)
        assert not torch.equal(first[0].pos, other[0].pos)
        assert first.y.tolist() == [k for k in range(5) for _ in range(3)]
    for name, same in (("orthogonal", True), ("orthogonal+dilation", False)):
        moved = Polytopes(3, name, 1, dtype=torch.float64)
        for a, b in zip(plain, moved, strict=True):
            lengths = [torch.pdist(graph.pos) for graph in (a, b)]
            assert torch.allclose(*lengths) is same
            ratio = lengths[1] / lengths[0]
            assert torch.allclose(ratio, ratio[0])


def test_theory_of_the_training_accuracy() -> None:
    assert known_train(Row("SDGN", "mean"), 3, 5) == Fraction(1, 5)
    assert known_train(Row("SDGN", "mean", "neighbour-sum"), 3, 5) == Fraction(4, 5)
    assert known_train(Row("SDGN", "mean", "neighbour-sum"), 4, 6) is None
    assert known_train(Row("DGN", "mean"), 4, 6) == Fraction(5, 6)
    assert known_train(Row("DGN", "sum"), 4, 6) is None


def test_symmetry_says_which_columns_are_kept() -> None:
    expected = {
        "GN": set(),
        "DGN": {"orthogonal"},
        "SDGN": {"orthogonal", "orthogonal+dilation"},
        "AGN": {"orthogonal", "orthogonal+dilation"},
        "Combined": {"orthogonal"},
        "CGN": {"orthogonal", "orthogonal+dilation", "special-conformal"},
    }
    for block, columns in expected.items():
        symmetry = network(Row(block, "mean"), 3, 5).symmetry
        assert {name for name in SETS if keeps(symmetry, name)} == columns, block


def test_verdicts() -> None:
    paper = {"paper_mean": 0.5}
    assert verdict([0.54, 0.54], fixed=None, **paper) == "within"
    assert verdict([0.56, 0.56], fixed=None, **paper) == "differs"
    assert verdict([0.56], fixed=None, paper_mean=0.5, error=0.021) == "within"
    assert verdict([0.56], fixed=None, paper_mean=0.5, error=0.019) == "differs"
    assert verdict([0.2, 0.2], fixed=Fraction(1, 5), **paper) == "exact"
    assert verdict([0.2, 0.21], fixed=Fraction(1, 5), **paper) == "violated"
    assert verdict([1.0, 0.8], fixed=[1.0, 0.8], **paper) == "exact"
    assert verdict([1.0, 0.8], fixed=[1.0, 1.0], **paper) == "violated"
    assert verdict([0.4], fixed=None, paper_mean=None) == "new"


def test_error_of_a_difference() -> None:
    """Ten initialisations and a drawn test set on both sides."""
    values = [0.4, 0.6] * 5
    over_seeds = (0.1**2 * 10 / 9) / 10 + 0.2**2 / 10
    assert difference_error(values, 0.2) == pytest.approx(over_seeds**0.5)
    over_sets = 0.3**2 * (1 / 100 + 1 / 15)
    found = difference_error(values, 0.2, sampling=0.3, ours=100)
    assert found == pytest.approx((over_seeds + over_sets) ** 0.5)


def test_sampling_of_a_test_set() -> None:
    """Against the deviation of accuracies over many test sets of 15 graphs a class."""
    chances = torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)
    torch.manual_seed(0)
    right = (torch.rand(4000, 15, 3, dtype=torch.float64) < chances).double()  # of one network
    measured = right.mean((1, 2)).std()
    labels = torch.arange(3).repeat(4000)
    one = sampling_deviation(labels, right[:, 0].flatten())
    assert one / 15**0.5 == pytest.approx(float(measured), rel=0.05)
    # a network that is always right about some classes and never about others: no set is better
    assert sampling_deviation(torch.tensor([0, 0, 1, 1]), torch.tensor([1.0, 1.0, 0.0, 0.0])) == 0


def test_kinds_of_cells() -> None:
    assert kind_of(True, 1.0, None, 5) == "fixed"
    assert kind_of(False, 1.0, None, 5) == "trivial"
    assert kind_of(False, 0.33, None, 3) == kind_of(False, 0.17, None, 6) == "trivial"
    assert kind_of(False, 0.2, 0.01, 5) == kind_of(False, 0.91, None, 5) == "open"
    assert kind_of(False, None, None, 5) == "new"


def test_results_have_the_agreed_form(tmp_path: Path) -> None:
    results = small(tmp_path, Row("DGN", "sum"), Row("SDGN", "mean"))
    assert json.loads((tmp_path / "results.json").read_text()) == results
    assert results["name"] == "polytopes-3d"
    assert results["seeds"] == [0, 1]
    assert results["epochs"] == 3
    assert {"symgnn", "commit", "torch", "python"} <= set(results["environment"])
    row = results["rows"][0]
    assert (row["block"], row["aggregation"], row["coordinate_map"]) == ("DGN", "sum", "identity")
    cell = row["cells"]["orthogonal"]
    assert {"mean", "std", "paper_mean", "paper_std", "verdict"} <= set(cell)
    assert cell["paper_mean"] == 1.0
    for column in ("train", "orthogonal", "orthogonal+dilation"):
        assert results["rows"][1]["cells"][column]["verdict"] == "exact"  # at chance, exactly
        assert results["rows"][1]["cells"][column]["mean"] == pytest.approx(0.2)


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (Row("DGN", "sum"), Row("DGN", "mean"), Row("GN", "sum"))
    right = small(tmp_path / "whole", *rows)
    real, ran = tables.run_row, []

    def dies_at_the_third(table: str, row: Row, *rest: object) -> dict:
        ran.append(str(row))
        if len(ran) == 3:
            raise KeyboardInterrupt
        return real(table, row, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(tables, "run_row", dies_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        small(tmp_path / "killed", *rows)
    assert not (tmp_path / "killed" / "results.json").exists()
    results = small(tmp_path / "killed", *rows)
    assert ran == ["DGN sum identity", "DGN mean identity", "GN sum identity", "GN sum identity"]
    for a, b in zip(results["rows"], right["rows"], strict=True):
        assert a["cells"] == b["cells"]
    # other settings, other code, or a damaged file, are run anew
    small(tmp_path / "killed", *rows, epochs=2)
    assert len(ran) == 7
    (tmp_path / "killed" / "rows" / "DGN-sum-identity.json").write_text("{")
    small(tmp_path / "killed", *rows, epochs=2)
    assert len(ran) == 8
    monkeypatch.setattr(resume, "code", lambda: {"commit": "another"})
    small(tmp_path / "killed", *rows, epochs=2)
    assert len(ran) == 11


def test_numbers_that_are_not_finite_are_null(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"loss": [1.0, float("nan")], "best": float("inf")})
    assert json.loads((tmp_path / "a.json").read_text()) == {"loss": [1.0, None], "best": None}


def test_rows_at_once_are_the_rows_one_by_one(tmp_path: Path) -> None:
    rows = (Row("DGN", "sum"), Row("SDGN", "sum"), Row("GN", "mean"))
    one_by_one = small(tmp_path / "one", *rows)
    at_once = small(tmp_path / "many", *rows, engine=Local(2))
    assert [row["cells"] for row in at_once["rows"]] == [row["cells"] for row in one_by_one["rows"]]


def test_data_efficiency(tmp_path: Path) -> None:
    options = {"seeds": 2, "epochs": 2, "samples": (1, 3), "copies": 2, "console": QUIET}
    first, more = (Samples(3, "orthogonal", count) for count in (1, 3))
    assert (len(first), len(more)) == (5, 15)
    assert all(torch.equal(more[k].pos, polytopes(3)[k].pos) for k in range(5))  # as they are
    assert sorted(more.y.tolist()) == sorted(first.y.tolist() * 3)
    results = run_efficiency(tmp_path, **options)  # type: ignore[arg-type]
    assert json.loads((tmp_path / "results.json").read_text()) == results
    assert [curve["column"] for curve in results["curves"]] == results["columns"]
    assert all(len(curve["mean"]) == 2 for curve in results["curves"])
    assert {line["block"] for line in results["lines"]} == {"AGN", "SDGN", "DGN"}
    assert len(results["lines"]) == 3 * len(results["columns"])


def test_data_efficiency_in_two_runs(tmp_path: Path) -> None:
    options: dict[str, Any] = {"seeds": 2, "epochs": 2, "copies": 2, "console": QUIET}
    whole = run_efficiency(tmp_path / "whole", samples=(1, 2, 3), **options)
    run_efficiency(tmp_path / "first", samples=(3,), **options)
    first = tmp_path / "first" / "results.json"
    second = run_efficiency(tmp_path / "second", samples=(2, 1), join=[first], **options)
    names = ("samples", "curves", "judged")
    assert {name: second[name] for name in names} == {name: whole[name] for name in names}
    # the points of the first run are not run again
    assert len(list((tmp_path / "second" / "points").iterdir())) == 10
    assert all(point["commit"] for point in second["points"])
    with pytest.raises(ValueError, match=r"--join: .* has settings .*'epochs': 2.* not .*3"):
        run_efficiency(tmp_path / "other", join=[first], **{**options, "epochs": 3})
    other_law = json.loads(first.read_text())
    other_law["settings"]["law"]["factor"] = "uniform"
    write_json(first, other_law)
    with pytest.raises(ValueError, match=r"has settings .*'factor': 'uniform'"):
        run_efficiency(tmp_path / "other", join=[first], **options)
    damaged = {**other_law, "settings": second["settings"]}
    del damaged["points"][1]["mean"]
    write_json(first, damaged)
    with pytest.raises(ValueError, match=r"is damaged, points\[1\] has no mean"):
        run_efficiency(tmp_path / "other", join=[first], **options)
    old = json.loads(first.read_text())
    del old["points"]
    write_json(first, old)
    with pytest.raises(ValueError, match=r"is no results\.json of symgnn reproduce with points"):
        run_efficiency(tmp_path / "other", join=[first], **options)


def test_claims_on_data_efficiency() -> None:
    def curve(column: str, *means: float) -> dict:
        return {"column": column, "mean": means}

    samples = (1, 10, 20, 100)
    curves = [
        curve("orthogonal", 0.3, 0.95, 0.89, 0.99),  # above 0.9 for good from 100 on
        curve("orthogonal+dilation", 0.3, 0.8, 0.95, 0.99),
        curve("non-orthogonal mu=0.5", 0.3, 0.8, 0.8, 0.8),
    ]
    found = judged(curves, samples)
    assert [each["holds"] for each in found] == [False, False, True]
    assert found[2]["found"] == "more than 100, 100 samples for orthogonal maps"
    curves[0] = curve("orthogonal", 0.3, 0.8, 0.9, 0.99)
    assert [each["holds"] for each in judged(curves, samples)] == [True, False, True]
    curves[0] = curve("orthogonal", 0.3, 0.4, 0.5, 0.6)  # none is enough, as for the last one
    assert [each["holds"] for each in judged(curves, samples)] == [False, False, None]


def test_marked_solids(tmp_path: Path) -> None:
    results = run_marked(tmp_path, seeds=1, epochs=1, copies=1, console=QUIET)
    assert len(results["rows"]) == 12
    assert results["rows"][0]["block"] == "SDGN, one marked"
    cells = [row["cells"] for row in results["rows"][:1] + results["rows"][6:7]]
    # one vertex is as good as another; marks that are drawn anew are not those of training
    assert [cell["orthogonal"]["verdict"] for cell in cells] == ["exact", "new"]
    assert "marked" in write_report(results, tmp_path).read_text()


def test_node_features_break_the_symmetry_of_sdgn_mean() -> None:
    """The paper's remark: with features that differ, SDGN with means tells all solids apart."""
    result = tables.run_row(TABLE.name, Row("SDGN", "mean"), 1, 300, "random", 1)
    assert result["cells"]["train"]["mean"] == 1
    assert result["cells"]["train"]["paper_mean"] is None


def test_rows_and_samples_take_several_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short = ["--seeds", "1", "--epochs", "1", "--out", str(tmp_path)]
    assert main(["reproduce", "polytopes-3d", *short, "--rows", "dgn sum", "gn mean"]) == 0
    table = json.loads((tmp_path / "polytopes-3d" / "results.json").read_text())
    assert [(row["block"], row["aggregation"]) for row in table["rows"]] == [
        ("DGN", "sum"),
        ("GN", "mean"),
    ]
    assert main(["reproduce", "data-efficiency", *short, "--samples", "1", "0"]) == 2
    assert "--samples: is 0" in capsys.readouterr().err
    assert main(["reproduce", "polytopes-3d", *short, "--samples", "1"]) == 2
    assert "--samples: is not an option of this experiment" in capsys.readouterr().err
    assert main(["reproduce", "--rows", "gn", "polytopes-3d"]) == 2
    assert "the name is missing; put it first" in capsys.readouterr().err


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["reproduce", "polytopes-3d", "--seeds", "1", "--epochs", "2", "--rows", "dgn sum"]
    assert main([*call, "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "report.html" in out.replace("\n", "")
    assert (tmp_path / "polytopes-3d" / "report.html").exists()
    assert (tmp_path / "polytopes-3d" / "results.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["polytopes-3"], "did you mean 'polytopes-3d'"),
        (["polytopes-3d", "--rows", "agm"], "no row of polytopes-3d is 'agm'"),
        (["polytopes-3d", "--seeds", "0"], "--seeds: is 0"),
        (["polytopes-3d", "--epochs", "-1"], "--epochs: is -1"),
    ],
)
def test_wrong_calls(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_place_that_cannot_be_written_is_refused_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tables, "run_row", lambda *_: pytest.fail("it was trained"))
    (tmp_path / "file").write_text("")
    assert main(["reproduce", "polytopes-3d", "--jobs", "1", "--out", str(tmp_path / "file")]) == 2
    error = capsys.readouterr().err
    assert "--out: cannot make" in error
    assert error.count("\n") == 1


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--list"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in TABLES)
