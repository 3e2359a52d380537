"""Charged particles: their motion, and the dataset."""

import math
import time
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.loader import DataLoader

from symgnn.data import NBody, Trajectories, integrate_charged, simulate_charged
from symgnn.data import _nbody as module

SMALL = {"train": 4, "validation": 3, "test": 2, "start": 0, "stop": 1}
State = tuple[Tensor, Tensor, Tensor]


def double(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def apart(n: int = 3) -> State:
    """Six trajectories of four particles too far from one another for a cut-off within 2 units."""
    generator = torch.Generator().manual_seed(n)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    row = torch.zeros(4, n, dtype=torch.float64)
    row[:, 0] = 4 * torch.arange(4)
    return row + 0.5 * normal(6, 4, n), 0.3 * normal(6, 4, n), normal(6, 4).sign()


def pair(product: int, distance: float = 1.0) -> State:
    """Two particles at rest on the first axis, with the given product of their charges."""
    pos = double([[[0.0, 0.0, 0.0], [distance, 0.0, 0.0]]])
    return pos, torch.zeros_like(pos), double([[1.0, product]])


def distance(pos: Tensor) -> Tensor:
    """`[F]`, of the first two particles of the first trajectory."""
    return (pos[0, :, 0] - pos[0, :, 1]).norm(dim=-1)


def energy(found: Trajectories) -> Tensor:
    """`[T, F]`."""
    total = 0.5 * found.vel.square().sum(dim=(2, 3))
    for i in range(found.pos.shape[2]):
        for j in range(i):
            product = found.charge[:, i] * found.charge[:, j]
            length = (found.pos[:, :, i] - found.pos[:, :, j]).norm(dim=-1)
            total = total + product[:, None] / length
    return total


def one_by_one(state: State, steps: int, step: float) -> tuple[list, list]:
    """One trajectory, from the definition: each force component by component."""
    x, v, q = (part[0].tolist() for part in state)
    for _ in range(steps):
        forces = [[0.0] * len(x[0]) for _ in x]
        for i, j in permutations(range(len(x)), 2):
            length = math.dist(x[i], x[j])
            for k in range(len(x[0])):
                forces[i][k] += q[i] * q[j] * (x[i][k] - x[j][k]) / length**3
        for i, force in enumerate(forces):
            for k, component in enumerate(force):
                v[i][k] += step * min(max(component, -0.1 / step), 0.1 / step)
                x[i][k] += step * v[i][k]
    return x, v


# ---------------------------------------------------------------- motion


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_follows_the_definition(n: int) -> None:
    state = apart(n)
    found = integrate_charged(*state, frames=[0, 2], every=10, step=0.01)
    for frame, steps in enumerate((10, 30)):
        x, v = one_by_one(state, steps, 0.01)
        assert torch.allclose(found.pos[0, frame], double(x), atol=1e-12, rtol=0)
        assert torch.allclose(found.vel[0, frame], double(v), atol=1e-12, rtol=0)


def test_forces_are_cut_off_per_component() -> None:
    near = double([[[0.0, 0.0, 0.0], [0.01, 0.02, 0.00001]]])
    state = (near, torch.zeros_like(near), double([[1.0, -1.0]]))
    found = integrate_charged(*state, frames=[0], every=1)
    third = 0.001 * 0.00001 / near[0, 1].norm().item() ** 3
    expected = double([[0.1, 0.1, third], [-0.1, -0.1, -third]])
    assert torch.allclose(found.vel[0, 0], expected, atol=1e-12, rtol=0)
    assert torch.allclose(found.pos[0, 0], near[0] + 0.001 * expected, atol=1e-15, rtol=0)


def test_momentum_is_kept() -> None:
    state = apart()
    momentum = integrate_charged(*state, frames=range(20)).vel.sum(dim=2)
    assert (momentum - state[1].sum(dim=1)[:, None]).abs().max() < 1e-13


def test_momentum_is_lost_where_forces_are_cut_off() -> None:
    pos = double([[[0.0, 0.0], [0.05, 0.0], [0.09, 0.0]]])
    found = integrate_charged(pos, torch.zeros_like(pos), torch.ones(1, 3), frames=[0], every=1)
    assert found.vel.sum(dim=2).abs().max() > 0.01


def test_energy_drifts_with_the_step() -> None:
    drift = []
    for step in (0.002, 0.001, 0.0005):
        every = round(0.2 / step)
        found = energy(integrate_charged(*apart(), frames=range(10), every=every, step=step))
        drift.append((found - found[:, :1]).abs().max().item())
    assert drift[1] < 1e-3
    assert drift[0] / drift[1] == pytest.approx(2, abs=0.1)
    assert drift[1] / drift[2] == pytest.approx(2, abs=0.1)


def test_circular_orbit_closes() -> None:
    pos = double([[[0.5, 0.0], [-0.5, 0.0]]])
    vel = double([[[0.0, 1.0], [0.0, -1.0]]]) / math.sqrt(2)
    period = math.pi * math.sqrt(2)
    found = integrate_charged(
        pos, vel, double([[1.0, -1.0]]), frames=[0, 1], every=2000, step=period / 4000
    )
    assert torch.allclose(found.pos[0, 0], -pos[0], atol=3e-3, rtol=0)
    assert torch.allclose(found.pos[0, 1], pos[0], atol=3e-3, rtol=0)


@pytest.mark.parametrize("reflect", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_moves_with_its_beginning(n: int, reflect: bool) -> None:
    pos, vel, charge = apart(n)
    generator = torch.Generator().manual_seed(1)
    turn = torch.linalg.qr(torch.randn(n, n, dtype=torch.float64, generator=generator))[0]
    if (torch.linalg.det(turn) < 0) != reflect:
        turn[0] *= -1
    shift = torch.randn(n, dtype=torch.float64, generator=generator)
    found = integrate_charged(pos, vel, charge, frames=range(10))
    moved = integrate_charged(pos @ turn + shift, vel @ turn, charge, frames=range(10))
    assert (found.pos[:, -1] - pos).abs().max() > 0.1
    assert torch.allclose(moved.pos, found.pos @ turn + shift, atol=1e-11, rtol=0)
    assert torch.allclose(moved.vel, found.vel @ turn, atol=1e-11, rtol=0)


def test_particles_have_no_order() -> None:
    order = torch.tensor([2, 0, 3, 1])
    found = integrate_charged(*apart(), frames=[9])
    other = integrate_charged(*(part[:, order] for part in apart()), frames=[9])
    assert torch.allclose(other.pos, found.pos[:, :, order], atol=1e-12, rtol=0)
    assert torch.equal(other.charge, found.charge[:, order])


def test_opposite_charges_attract_and_equal_ones_repel() -> None:
    frames = range(4)
    assert (distance(integrate_charged(*pair(-1), frames=frames).pos).diff() < 0).all()
    assert (distance(integrate_charged(*pair(1), frames=frames).pos).diff() > 0).all()
    assert (distance(integrate_charged(*pair(0), frames=frames).pos) == 1).all()


def test_one_particle_moves_straight() -> None:
    vel = double([[[1.0, -2.0]]])
    found = integrate_charged(torch.zeros_like(vel), vel, torch.ones(1, 1), frames=[0, 4])
    assert torch.allclose(found.pos[0, :, 0], double([[0.1, -0.2], [0.5, -1.0]]), atol=1e-12)
    assert torch.equal(found.vel[0, :, 0], vel[0].expand(2, 2))


def test_particles_at_the_same_place_leave_one_another_alone() -> None:
    found = integrate_charged(*pair(1, distance=0.0), frames=[0])
    assert (found.pos == 0).all()
    assert (found.vel == 0).all()


def test_the_beginning_is_not_changed() -> None:
    state = apart()
    copies = [part.clone() for part in state]
    integrate_charged(*state, frames=[0])
    assert all(map(torch.equal, state, copies))


# ---------------------------------------------------------------- random states


@pytest.mark.parametrize(("particles", "n"), [(5, 3), (5, 2), (1, 1), (40, 3)])
def test_states_are_drawn_as_published(particles: int, n: int) -> None:
    count = 8000 // particles
    found = simulate_charged(
        count, seed=0, particles=particles, dimension=n, frames=[0], every=1, step=1e-9
    )
    assert found.pos.shape == found.vel.shape == (count, 1, particles, n)
    assert found.charge.shape == (count, particles)
    assert {part.dtype for part in found} == {torch.float64}
    assert (found.vel.norm(dim=-1) - 0.5).abs().max() < 1e-3
    assert found.vel.mean(dim=(0, 1, 2)).abs().max() < 0.03
    assert found.pos.mean(dim=(0, 1, 2)).abs().max() < 0.05
    assert found.pos.std() == pytest.approx((particles / 5) ** (1 / n), rel=0.03)
    assert set(found.charge.unique().tolist()) == {-1.0, 1.0}
    assert found.charge.mean().abs() < 0.04
    assert abs(np.corrcoef(found.charge.flatten(), found.pos[..., 0].flatten())[0, 1]) < 0.04


@pytest.mark.parametrize(("seed", "skip"), [(43, 0), (43, 2), (7, 1)])
def test_the_numbers_are_those_of_the_published_program(seed: int, skip: int) -> None:
    """In the order in which it draws them: charges, positions, velocities, noise of no size."""
    drawn = np.random.RandomState(seed)
    states = []
    for _ in range(skip + 3):
        charge = drawn.choice(np.array([-1.0, 0.0, 1.0]), size=(5, 1), p=[0.5, 0, 0.5])
        pos, vel = drawn.randn(3, 5), drawn.randn(3, 5)
        for _ in range(2):
            drawn.randn(49, 3, 5)
        states.append((charge[:, 0], pos.T, (vel / np.linalg.norm(vel, axis=0) * 0.5).T))
    parts = zip(*states[skip:], strict=True)
    charge, pos, vel = (torch.from_numpy(np.stack(part)) for part in parts)
    found = simulate_charged(3, seed=seed, skip=skip, frames=[0, 1])
    expected = integrate_charged(pos, vel, charge, frames=[0, 1])
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def test_splits_follow_each_other() -> None:
    found = simulate_charged(2, seed=43, skip=12_000, frames=[0, 1])
    assert torch.equal(NBody("test", **SMALL)[1].pos, found.pos[1, 0].float())
    found = simulate_charged(1, seed=43, skip=10_001, frames=[0, 1])
    more = NBody("validation", **SMALL | {"train": 10_001})
    assert torch.equal(more[0].pos, found.pos[0, 0].float())


def test_the_same_seed_gives_the_same_trajectories() -> None:
    first, again, fewer, other = (
        simulate_charged(count, seed=seed, frames=[0, 1])
        for count, seed in ((5, 1), (5, 1), (3, 1), (5, 2))
    )
    assert all(map(torch.equal, first, again))
    assert all(torch.equal(a[:3], b) for a, b in zip(first, fewer, strict=True))
    assert not torch.isclose(first.pos, other.pos).any()


def test_frames_are_counted_from_the_end_of_the_first_hundred_steps() -> None:
    every = simulate_charged(2, seed=0, frames=range(3))
    some = simulate_charged(2, seed=0, frames=(0, 2))
    finer = simulate_charged(2, seed=0, frames=[5], every=50)
    assert every.pos.shape[1] == 3
    assert torch.equal(every.pos[:, [0, 2]], some.pos)
    assert torch.equal(every.vel[:, [0, 2]], some.vel)
    assert torch.equal(every.pos[:, 2], finer.pos[:, 0])


def test_progress_is_reported() -> None:
    calls: list[tuple[int, int]] = []
    simulate_charged(
        2, seed=0, frames=[2], every=7, on_progress=lambda done, total: calls.append((done, total))
    )
    assert calls == [(7, 21), (14, 21), (21, 21)]


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
        ({"seed": 2**32}, "seed: 4294967296 is not possible; pass an integer below"),
        ({"seed": (1, None)}, "seed: is None; give a whole number"),
        ({"skip": -1}, "skip: is -1; give a whole number of at least 0"),
        ({"frames": []}, r"frames: \[\] is not possible; pass a list of rising integers"),
        ({"frames": [3, 3]}, r"frames: \[3, 3\] is not possible; pass a list of rising"),
        ({"frames": 3}, "frames: 3 is not possible; pass a list"),
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
        ({"pos": torch.zeros(4, 3)}, r"pos: shape \(4, 3\) is not possible; pass \[T, N, n\]"),
        ({"pos": torch.zeros(1, 0, 3)}, r"pos: shape \(1, 0, 3\) is not possible"),
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
