"""`symgnn bench`."""

import json
from functools import partial
from pathlib import Path

import pytest
import torch

from bench.samples import absent, bad, good, suite
from symgnn.bench import SUITES
from symgnn.bench import _suite as module
from symgnn.bench._measure import Spread
from symgnn.bench._speed_claims import SpeedClaim
from symgnn.bench._suite import Suite, SuitePart
from symgnn.bench.document import main as document
from symgnn.cli import main


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch):
    """Puts a suite of these parts in the place of `angles`."""

    def put(*runs) -> None:
        monkeypatch.setattr(module, "suite_named", lambda name: suite(*runs))

    return put


@pytest.mark.parametrize(("runs", "code"), [((good,), 0), ((good, bad), 1), ((absent,), 0)])
def test_check_exits_with_1_where_a_bound_is_missed(made_up, runs, code, capsys) -> None:
    made_up(*runs)
    assert main(["bench", "angles", "--check"]) == code
    captured = capsys.readouterr()
    assert ("this over that, 2.0 is 2.00; the bound is ≤ 1.3" in captured.err) == bool(code)
    assert main(["bench", "angles"]) == 0  # without, it only tells


def test_json_and_nothing_else(made_up, capsys: pytest.CaptureFixture[str]) -> None:
    made_up(good, absent)
    assert main(["bench", "angles", "--json", "--threads", "1"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["suites"]
    assert found["threads"] == 1
    assert found["environment"]["torch"]
    assert [claim["reached"] for claim in found["claims"]] == [True, True, None]


def test_threads_are_set_and_set_back(made_up) -> None:
    before, seen = torch.get_num_threads(), []

    def part(rounds) -> list:
        seen.append(torch.get_num_threads())
        return []

    made_up(part)
    assert main(["bench", "angles", "--threads", str(before + 1)]) == 0
    assert (seen, torch.get_num_threads()) == ([before + 1], before)


def test_out_has_results_figures_and_a_page(made_up, tmp_path: Path, capsys) -> None:
    made_up(good, bad)
    assert main(["bench", "angles", "--out", str(tmp_path / "new")]) == 0
    assert str(tmp_path / "new" / "report.html") in capsys.readouterr().out
    found = {path.relative_to(tmp_path / "new").as_posix() for path in tmp_path.rglob("*.*")}
    assert found == {"angles.json", "results.json", "report.html", "figures/angles.png"}
    page = (tmp_path / "new" / "report.html").read_text()
    assert "2 of 3 bounds reached." in page

    # and from there into the documentation
    text = tmp_path / "docs" / "speed.md"
    text.parent.mkdir()
    text.write_text("<!-- bench angles -->\n<!-- end -->\n")
    assert document([str(tmp_path / "new"), str(text)]) == 0
    assert "![" in text.read_text()
    assert (text.parent / "pictures" / "speed-angles.png").stat().st_size > 1000


def test_a_page_takes_no_quick_results(made_up, tmp_path: Path, capsys) -> None:
    made_up(good)
    page, other = tmp_path / "speed.md", tmp_path / "other.md"
    page.write_text("<!-- bench angles -->\n<!-- end -->\n")
    other.write_text("<!-- bench learning -->\n<!-- end -->\n")
    module.run_suites(["angles"], quick=True, out=tmp_path)
    assert document([str(tmp_path), str(other)]) == 0  # it has no place for those
    assert "Not measured yet." in other.read_text()
    assert not (tmp_path / "pictures").exists()
    assert document([str(tmp_path), str(page)]) == 2
    assert "angles: is from a run with --quick" in capsys.readouterr().err
    module.run_suites(["angles"], out=tmp_path)
    assert document([str(tmp_path), str(tmp_path / "none.md")]) == 2
    assert "No such file" in capsys.readouterr().err
    assert document([]) == 2


def test_results_keep_what_other_suites_wrote(made_up, tmp_path: Path) -> None:
    made_up(good)
    (tmp_path / "seeds.json").write_text(json.dumps({"name": "seeds", "claims": []}))
    module.run_suites(["angles"], out=tmp_path)
    found = json.loads((tmp_path / "results.json").read_text())["suites"]
    assert [each["name"] for each in found] == ["angles", "seeds"]


def test_stopped_it_says_where_the_rest_is(made_up, tmp_path: Path, capsys) -> None:
    def stopped(rounds) -> list:
        raise KeyboardInterrupt

    made_up(stopped)
    assert main(["bench", "angles", "--out", str(tmp_path)]) == 130
    assert capsys.readouterr().err == f"symgnn: stopped; what was done is in {tmp_path}\n"


def test_a_place_that_cannot_be_made_is_known_before(made_up, tmp_path: Path, capsys) -> None:
    made_up(bad)
    (tmp_path / "file").write_text("")
    assert main(["bench", "angles", "--out", str(tmp_path / "file" / "in")]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("symgnn: --out: cannot make ")
    assert captured.out == ""


def test_list_names_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--list"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in SUITES)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["angels"], "bench: 'angels' is not known; did you mean 'angles'? Choose from"),
        (["angles", "zzz"], "bench: 'zzz' is not known; choose from angles,"),
        (["--threads", "0"], "--threads: is 0; give a whole number of at least 1"),
    ],
)
def test_wrong_calls_say_what_is_right(arguments, words, capsys) -> None:
    assert main(["bench", *arguments]) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_some_shapes_keep_what_is_there_of_the_others(tmp_path: Path, monkeypatch) -> None:
    ratios = iter([1.0, 2.0, 3.0])

    def parts(quick: bool) -> list[SuitePart]:
        def run(shape: str, rounds) -> list[SpeedClaim]:
            return [SpeedClaim(shape, "this over that", Spread.of([next(ratios)]), 9.0)]

        return [SuitePart(shape, partial(run, shape)) for shape in ("2-d", "3-d")]

    monkeypatch.setattr(module, "suite_named", lambda name: Suite("scale", "", parts))
    out = ["bench", "scale", "--out", str(tmp_path)]
    assert main(out) == 0
    first = json.loads((tmp_path / "scale.json").read_text())
    first["environment"]["commit"] = "abc"
    (tmp_path / "scale.json").write_text(json.dumps(first))
    assert main([*out, "--shape", "3-d"]) == 0
    found = json.loads((tmp_path / "scale.json").read_text())
    assert [(c["shape"], c["ratio"]["median"]) for c in found["claims"]] == [
        ("2-d", 1.0),
        ("3-d", 3.0),
    ]
    assert found["earlier"] == {"2-d": "abc"}


def test_a_shape_that_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "scale", "--shape", "4-d"]) == 2
    assert "--shape: is '4-d', which scale does not have; choose from 2-d, 3-d" in (
        capsys.readouterr().err
    )
