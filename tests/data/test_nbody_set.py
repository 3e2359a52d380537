"""The dataset of charged particles, its cache, and wrong options"""

import math
import time
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.loader import DataLoader

from data.nbody_cases import SMALL, pair
from symgnn.data import NBody, Trajectories, integrate_charged, simulate_charged
from symgnn.data import _nbody as module

# ---------------------------------------------------------------- the dataset


@pytest.mark.parametrize("n", [1, 2, 3])
def test_graphs_have_the_published_fields(n: int) -> None:
    graphs = NBody("test", **SMALL, dimension=n)
    found = simulate_charged(2, seed=43, skip=12_000, dimension=n, frames=[0, 1])
    assert len(graphs) == 2
    for k, data in enumerate(graphs):
        assert torch.equal(data.pos, found.pos[k, 0].float())
        assert torch.equal(data.vel, found.vel[k, 0].float())
        assert torch.equal(data.y, found.pos[k, 1].float())
        assert torch.equal(data.charge, found.charge[k, :, None].float())
        assert torch.allclose(data.x, data.vel.norm(dim=1, keepdim=True))
        assert data.edge_index.T.tolist() == [list(ends) for ends in permutations(range(5), 2)]
        source, target = data.edge_index
        assert torch.equal(data.edge_attr, data.charge[source] * data.charge[target])
        assert data.edge_attr.shape == (20, 1)


def test_defaults_are_the_published_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def simulate(count: int, **options: object) -> Trajectories:
        asked.append((count, options["particles"], options["dimension"], options["frames"]))
        return simulate_charged(1, seed=0, frames=[0, 1])

    monkeypatch.setattr(module, "simulate_charged", simulate)
    for split in module.SPLITS:
        NBody(split)
    assert asked == [(count, 5, 3, (30, 40)) for count in (3000, 2000, 2000)]
    assert simulate_charged(1, seed=0, particles=1, every=1).pos.shape == (1, 49, 1, 3)


def test_splits_have_their_sizes_and_differ() -> None:
    splits = [NBody(split, **SMALL) for split in module.SPLITS]
    assert [len(split) for split in splits] == [4, 3, 2]
    firsts = torch.stack([split[0].pos for split in splits])
    assert len(firsts.flatten().unique()) == firsts.numel()
    assert torch.equal(NBody("train", **SMALL)[0].pos, firsts[0])
    assert not torch.isclose(NBody("train", **SMALL, seed=1)[0].pos, firsts[0]).any()


def test_batches_and_dtype() -> None:
    graphs = NBody("train", **SMALL, dtype=torch.float64)
    batch = next(iter(DataLoader(graphs, batch_size=4)))
    assert batch.y.shape == batch.vel.shape == (20, 3)
    assert batch.edge_index.max() == 19
    floats = (batch.pos, batch.vel, batch.x, batch.charge, batch.edge_attr, batch.y)
    assert {part.dtype for part in floats} == {torch.float64}
    assert not torch.equal(batch.pos, batch.pos.float().double())  # not merely widened


def test_a_single_particle_has_no_edges() -> None:
    data = NBody("test", **SMALL, particles=1)[0]
    assert data.edge_index.shape == (2, 0)
    assert data.edge_attr.shape == (0, 1)
    assert data.pos.shape == (1, 3)


# ---------------------------------------------------------------- the cache


def refuse(*_: object, **__: object) -> Trajectories:
    raise AssertionError("simulated again")


def test_simulated_once_and_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "not" / "there"
    first = NBody("train", root=root, **SMALL)
    assert [file.suffix for file in root.iterdir()] == [".npz"]  # and nothing besides
    monkeypatch.setattr(module, "simulate_charged", refuse)
    again = NBody("train", root=str(root), **SMALL)
    for a, b in zip(first, again, strict=True):
        assert a.keys() == b.keys()
        assert all(torch.equal(a[key], b[key]) for key in a.keys())  # noqa: SIM118
    wide = NBody("train", root=root, **SMALL, dtype=torch.float64)
    assert not torch.equal(wide[0].pos, first[0].pos.double())


@pytest.mark.parametrize(
    "other",
    [
        {"split": "test"},
        {"train": 5},
        {"seed": 7},
        {"particles": 4},
        {"dimension": 2},
        {"stop": 3},
        {"start": 1},
    ],
)
def test_other_settings_are_other_files(tmp_path: Path, other: dict) -> None:
    settings = {"split": "train", "root": tmp_path, **SMALL, "test": 4, "stop": 2}
    NBody(**settings)
    expected = NBody(**settings | other | {"root": None})
    found = NBody(**settings | other)
    assert len(list(tmp_path.iterdir())) == 2
    assert torch.equal(found[-1].pos, expected[-1].pos)
    assert torch.equal(found[-1].y, expected[-1].y)


def damaged(content: bytes) -> dict[str, bytes]:
    middle = len(content) // 3
    flipped = bytes([content[middle] ^ 1])
    return {
        "empty": b"",
        "cut": content[: len(content) // 2],
        "one bit": content[:middle] + flipped + content[middle + 1 :],
        "text": b"these are not\nthe trajectories",
    }


@pytest.mark.parametrize("kind", damaged(b"any"))
def test_damaged_file_is_named(tmp_path: Path, kind: str) -> None:
    expected = NBody("train", root=tmp_path, **SMALL)[0].pos
    (file,) = tmp_path.iterdir()
    file.write_bytes(damaged(file.read_bytes())[kind])
    with pytest.raises(ValueError, match=r"cannot be read.*delete it") as caught:
        NBody("train", root=tmp_path, **SMALL)
    assert str(caught.value).startswith(str(file))
    assert "\n" not in str(caught.value)
    file.unlink()
    assert torch.equal(NBody("train", root=tmp_path, **SMALL)[0].pos, expected)


def test_file_of_other_shapes_is_named(tmp_path: Path) -> None:
    NBody("train", root=tmp_path, **SMALL)
    (file,) = tmp_path.iterdir()
    NBody("test", root=tmp_path, **SMALL)
    (other,) = set(tmp_path.iterdir()) - {file}
    other.replace(file)
    with pytest.raises(ValueError, match=r"\(its arrays have other shapes\); delete it"):
        NBody("train", root=tmp_path, **SMALL)


def test_killed_while_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save = np.savez

    def die(file: object, **arrays: np.ndarray) -> None:
        save(file, pos=arrays["pos"])
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", die)
    with pytest.raises(KeyboardInterrupt):
        NBody("train", root=tmp_path, **SMALL)
    monkeypatch.undo()
    assert not list(tmp_path.iterdir())

    expected = NBody("train", root=tmp_path, **SMALL)[0].pos
    (file,) = tmp_path.iterdir()
    file.rename(file.with_name(f".{file.name}.1"))  # as a process killed outright leaves it
    assert torch.equal(NBody("train", root=tmp_path, **SMALL)[0].pos, expected)
    assert file.exists()


def test_root_that_is_a_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ValueError, match=r"root: .*file cannot be a directory.*pass another"):
        NBody("train", root=file, **SMALL)


# ---------------------------------------------------------------- the bar


def test_bar_only_if_asked_for_and_slow(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)  # quick on a busy machine, too
    NBody("test", **SMALL)
    NBody("test", **SMALL, progress=True)
    assert capfd.readouterr() == ("", "")
    monkeypatch.setenv("FORCE_COLOR", "1")  # for rich, a terminal
    NBody("test", **SMALL, progress=True)
    assert capfd.readouterr() == ("", "")
    clock = iter(range(0, 1000, 3))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    NBody("test", **SMALL, progress=False)
    assert capfd.readouterr() == ("", "")
    NBody("test", **SMALL, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "2 trajectories, test" in err


# ---------------------------------------------------------------- wrong input


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"count": 0}, "count: is 0; give a whole number of at least 1"),
        ({"count": 2.0}, "count: is 2.0; give a whole number"),
        ({"particles": 0}, "particles: is 0; give a whole number of at least 1"),
        ({"dimension": True}, "dimension: is True; give a whole number of at least 1"),
        ({"seed": -1}, "seed: is -1; give a whole number of at least 0"),
        ({"seed": 2**32}, "seed: is 4294967296; pass an integer below"),
        ({"seed": (1, None)}, "seed: is None; give a whole number"),
        ({"skip": -1}, "skip: is -1; give a whole number of at least 0"),
        ({"frames": []}, r"frames: is \[\]; pass a list of increasing integers"),
        ({"frames": [3, 3]}, r"frames: is \[3, 3\]; pass a list of increasing"),
        ({"frames": 3}, "frames: is 3; pass a list"),
        ({"frames": [-1]}, "frames: is -1; give a whole number of at least 0"),
        ({"every": 0}, "every: is 0; give a whole number of at least 1"),
        ({"step": 0.0}, "step: is 0.0; give a positive number"),
        ({"step": math.nan}, "step: is nan; give"),
        ({"step": "1"}, "step: is '1'; give"),
    ],
)
def test_wrong_simulation(wrong: dict, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        simulate_charged(**{"count": 1, "seed": 0, "frames": [0]} | wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"pos": torch.zeros(4, 3)}, r"pos: has shape \(4, 3\); pass \[T, N, n\]"),
        ({"pos": torch.zeros(1, 0, 3)}, r"pos: has shape \(1, 0, 3\)"),
        ({"vel": torch.zeros(1, 2, 2)}, r"vel: shape \(1, 2, 2\) does not fit pos; pass \(1, 2, 3"),
        ({"charge": torch.ones(1, 2, 1)}, r"charge: shape \(1, 2, 1\) does not.*pass \(1, 2\)"),
        ({"pos": torch.full((1, 2, 3), math.inf)}, "pos: some values are not finite"),
        ({"charge": torch.full((1, 2), math.nan)}, "charge: some values are not finite"),
    ],
)
def test_wrong_state(wrong: dict[str, Tensor], message: str) -> None:
    state = dict(zip(("pos", "vel", "charge"), pair(1), strict=True))
    with pytest.raises(ValueError, match=f"^{message}"):
        integrate_charged(**state | wrong, frames=[0])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"split": "valid"}, "split: 'valid' is not known; choose from train, validation, test"),
        ({"validation": 0}, "validation: is 0; give a whole number of at least 1"),
        ({"seed": "x"}, "seed: is 'x'; give a whole number of at least 0"),
        ({"particles": 0}, "particles: is 0; give a whole number of at least 1"),
        ({"dimension": 0}, "dimension: is 0; give a whole number of at least 1"),
        ({"start": -1}, "start: is -1; give a whole number of at least 0"),
        ({"start": 3, "stop": 3}, "stop: is 3; give a whole number of at least 4"),
    ],
)
def test_wrong_dataset(wrong: dict, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        NBody(**{"split": "train", **SMALL} | wrong)
