"""`symgnn data`."""

from pathlib import Path

import pytest

from symgnn.cli import main
from symgnn.data import DATASETS
from symgnn.data import _image_files as image_files

Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No data but those of the test."""
    monkeypatch.delenv("SYMGNN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def run(capsys: Output, *arguments: str, code: int = 0) -> str:
    """What the command prints."""
    assert main(["data", *arguments]) == code
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return err if code == 2 else out


def test_list(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = run(capsys, "list")
    for name in DATASETS:
        assert name in text
    assert "130,831" in text
    assert " 170 " in text
    assert text.count("\n") == len(DATASETS) + 1  # a line each, in a terminal of 80 columns
    assert "sample only" in text
    options = ("--set", "source=generated", "--set", "nodes=5,8", "--limit", "1")
    run(capsys, "make", "tsp", *options)
    assert run(capsys, "list").splitlines()[4].split()[-1] == "graphs"


@pytest.mark.parametrize("name", ["qm9", "mnist", "cifar10", "tsp"])
def test_samples(capsys: Output, name: str) -> None:
    made = run(capsys, "make", name, "--from", "sample", "--jobs", "1")
    assert "to train" in made
    assert "source: " in made
    assert run(capsys, "check", name, "--from", "sample", "--jobs", "1").endswith("all is well\n")
    assert run(capsys, "show", name, "--from", "sample") == f"picture: {name}-0.png\n"
    assert Path(f"{name}-0.png").stat().st_size > 10_000
    run(
        capsys, "show", name, "0", "--split", "test", "--from", "sample", "--out", "new/picture.svg"
    )
    assert Path("new/picture.svg").read_text().startswith("<?xml")


def test_what_is_made_here(capsys: Output) -> None:
    assert "nothing to get, it is simulated" in run(capsys, "get", "nbody")
    run(capsys, "show", "polytopes-3d", "4", "--out", "solid.png")
    run(capsys, "show", "nbody", "--out", "particles.png")
    assert Path("particles.png").stat().st_size > 10_000
    assert "5 to train" in run(capsys, "make", "polytopes-3d", "--seed", "3", "--set", "copies=2")
    options = ("--set", "source=generated", "--set", "nodes=5,8", "--limit", "2,1,1", "--jobs", "1")
    assert "2 to train, 1 to validate" in run(capsys, "make", "tsp", *options)


def test_get_from_a_folder(capsys: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    text = "0.1 0.2 0.3 0.4 0.5 0.6 output 1 2 3 1 \n"
    for part in ("train", "val", "test"):
        (folder / f"tsp50-500_{part}.txt").write_text(text)
    assert run(capsys, "get", "tsp", "--from", str(folder)).count("cache/symgnn/tsp/") == 3
    assert run(capsys, "get", "tsp").count("tsp50-500") == 3  # there, so nothing is downloaded
    assert "1 to train" in run(capsys, "make", "tsp", "--jobs", "1")
    found = run(capsys, "check", "tsp", "--jobs", "1", code=1)
    assert "the splits have (1, 1, 1) graphs, not (10000, 1000, 1000)" in found
    assert "is not a dataset; did you mean 'mnist'?" in run(capsys, "get", "mnits", code=2)
    message = run(capsys, "get", "cifar10", "--from", str(folder), code=2)
    assert "has no file of cifar10; expected one of: cifar-10-binary.tar.gz (md5 c32a" in message


def test_check_finds_a_damaged_file(capsys: Output, tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "symgnn" / "cifar10"
    folder.mkdir(parents=True)
    (folder / "test_batch.bin").write_bytes(b"damaged")
    found = run(capsys, "check", "cifar10", "--jobs", "1", code=1)
    assert "test_batch.bin: its md5 is" in found
    assert found.endswith("1 faults\n")


def test_no_network(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    unreachable = image_files.Source("cifar10", "archive", ("http://127.0.0.1:9/",), "md5:0", 5)
    monkeypatch.setattr(image_files, "CIFAR10_ARCHIVE", unreachable)
    message = run(capsys, "get", "cifar10", code=2)
    assert message.startswith("symgnn: cifar10: cannot get archive (http://127.0.0.1:9/: ")
    assert message.count("\n") == 1
    assert "--from" in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "tsp", "7", "--from", "sample"], "index: 7 is not possible; train of tsp has 2"),
        (["show", "tsp", "--split", "all", "--from", "sample"], "split: 'all' is not known"),
        (["show", "tsp", "--from", "sample", "--out", "x.nonsense"], "--out: cannot write x.nons"),
        (
            ["make", "tsp", "--set", "limitt=3"],
            "limitt: is not an option of tsp; did you mean 'limit'?",
        ),
        (["make", "tsp", "--set", "limit"], "--set: 'limit' is not of the form KEY=VALUE"),
        (["make", "polytopes-3d", "--limit", "3"], "limit: is not an option of polytopes-3d"),
        (
            ["make", "qm9", "--from", "sample", "--set", "targets=mu,nu"],
            "targets: 'nu' is not known",
        ),
        (["make", "tsp", "--from", "nowhere"], "nowhere: has no tsp50-500_train.txt"),
    ],
)
def test_wrong_calls(capsys: Output, arguments: list[str], message: str) -> None:
    assert run(capsys, *arguments, code=2).startswith(f"symgnn: {message}")
