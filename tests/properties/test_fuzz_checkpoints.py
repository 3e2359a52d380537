"""Files of a run with a bit that is not what it was, or cut off: one line, or the same weights."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import symgnn
from symgnn.cli import main
from symgnn.data import polytopes
from symgnn.train._config import resolve
from symgnn.train._training import finish, train

CONFIG = {
    "data": {"name": "polytopes-3d", "copies": 1, "node_features": True, "drop": ["x"]},
    "model": {"block": "dgn", "hidden": 4, "layers": 1},
    "train": {"epochs": 2, "batch_size": 2, "seeds": 2},
}
FEW, MANY = 5, 200
FILES = ("seeds-1-2/best.ckpt", "run.json", "config.yaml")


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was trained and measured."""
    out = tmp_path_factory.mktemp("good") / "run"
    run = train(resolve(CONFIG), out)
    assert run is not None
    finish(run)
    return out


@pytest.fixture
def run(good: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    return Path(shutil.copytree(good, tmp_path / "run"))


def flipped(content: bytes, draw: random.Random) -> bytes:
    """One bit is another."""
    place, bit = draw.randrange(len(content)), draw.randrange(8)
    return content[:place] + bytes([content[place] ^ (1 << bit)]) + content[place + 1 :]


def cut(content: bytes, draw: random.Random) -> bytes:
    """The end is missing."""
    return content[: draw.randrange(len(content))]


def answers(run: Path) -> list[torch.Tensor]:
    """All that a run says: its weights, and what it predicts."""
    loaded = symgnn.load(run)
    found = loaded.predict(polytopes(3))
    assert found.deviation is not None
    return [*loaded.state_dict().values(), found.value, found.deviation]


def check(run: Path, name: str, damage: Callable[[bytes, random.Random], bytes], many: int) -> int:
    """How many damages were refused; all others change nothing."""
    path, expected = run / name, answers(run)
    content, refused = path.read_bytes(), 0
    for seed in range(many):
        path.write_bytes(damage(content, random.Random(f"{name} {seed}")))
        try:
            found = answers(run)
        except ValueError as error:
            refused += 1
            text = str(error)
            assert "\n" not in text, (seed, text)
            assert Path(name).name in text, (seed, text)
        else:
            assert all(map(torch.equal, found, expected)), f"{name}, seed {seed}: other answers"
    path.write_bytes(content)
    return refused


@pytest.mark.parametrize(
    "many", [FEW, pytest.param(MANY, marks=pytest.mark.slow)], ids=["few", "many"]
)
@pytest.mark.parametrize("damage", [flipped, cut])
@pytest.mark.parametrize("name", FILES)
def test_damaged_files(name: str, damage: Callable, many: int, run: Path) -> None:
    refused = check(run, name, damage, many)
    if name.endswith(".ckpt") or (name == "run.json" and damage is cut):
        assert refused == many


@pytest.mark.parametrize(
    "many", [FEW, pytest.param(MANY, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_results_and_damaged_weights(
    many: int, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Measuring with damaged weights leaves the results alone, and so does going on from them."""
    before = (run / "metrics.json").read_bytes()
    for name in ("best.ckpt", "last.ckpt"):
        path = run / "seeds-1-2" / name
        content = path.read_bytes()
        for seed in range(many):
            path.write_bytes(flipped(content, random.Random(seed)))
            commands = [["train", str(run), "--resume"]]
            if name == "best.ckpt":
                commands += [["evaluate", str(run)], ["predict", str(run), "--split", "test"]]
            for command in commands:
                capsys.readouterr()
                assert main(command) == 2
                error = capsys.readouterr().err
                assert f"{name}: is damaged" in error
                assert error.count("\n") == 1
            assert (run / "metrics.json").read_bytes() == before
        path.write_bytes(content)
    assert main(["evaluate", str(run)]) == 0
    assert json.loads((run / "metrics.json").read_bytes()) == json.loads(before)


@pytest.mark.parametrize(
    "many", [FEW, pytest.param(MANY, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_damaged_results_are_measured_anew(many: int, run: Path) -> None:
    path, expected = run / "metrics.json", answers(run)
    content = path.read_bytes()
    for seed in range(many):
        draw = random.Random(seed)
        path.write_bytes((cut if seed % 3 == 0 else flipped)(content, draw))
        assert main(["evaluate", str(run)]) in (0, 2)  # 2: what was there cannot be better
        assert all(map(torch.equal, answers(run), expected))
    path.unlink()
    assert main(["evaluate", str(run)]) == 0
    assert json.loads(path.read_bytes())["test"] == json.loads(content)["test"]


def test_the_mean_of_the_targets_is_covered(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A digit of a number that predictions depend on."""
    path = run / "run.json"
    record = json.loads(path.read_text())
    for key, changed in (
        ("scaler", {**record["scaler"], "mean": [1e3]}),
        ("scale", 2.0),
        ("class_counts", [1, 2, 3, 4, 5]),
        ("sha256", "0" * 64),
    ):
        path.write_text(json.dumps({**record, key: changed}))
        assert main(["evaluate", str(run)]) == 2
        assert "run.json: is damaged or was changed" in capsys.readouterr().err
    path.write_text(json.dumps(record))  # laid out otherwise
    assert main(["evaluate", str(run)]) == 0


def test_a_config_that_was_changed(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run / "config.yaml"
    text = path.read_text()
    for old, new in (
        ("- x", "- y2"),
        ("batch_size: 2", "batch_size: 3"),
        ("learning_rate: 0.001", "learning_rate: 0.002"),
        ("seeds: 2", "seeds: 1"),
    ):
        assert old in text
        path.write_text(text.replace(old, new, 1))
        for command in (["evaluate", str(run)], ["train", str(run), "--resume"]):
            assert main(command) == 2
            error = capsys.readouterr().err
            assert error.count("\n") == 1
            assert old.partition(":")[0].removeprefix("- ") in error or "drop" in error
