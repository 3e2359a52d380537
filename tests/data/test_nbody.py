"""Charged particles: their motion, and the dataset."""

import math
from itertools import permutations

import numpy as np
import pytest
import torch
from torch import Tensor

from data.nbody_cases import SMALL, State, distance, double, pair
from symgnn.data import NBody, Trajectories, integrate_charged, simulate_charged


def apart(n: int = 3) -> State:
    """Six trajectories of four particles too far from one another for a cut-off within 2 units."""
    generator = torch.Generator().manual_seed(n)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    row = torch.zeros(4, n, dtype=torch.float64)
    row[:, 0] = 4 * torch.arange(4)
    return row + 0.5 * normal(6, 4, n), 0.3 * normal(6, 4, n), normal(6, 4).sign()


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
