"""Charged particles: where are they, one unit of time later?

The n-body data of EGNN (Satorras et al. 2021, section 5.1), which are the charged particles of NRI
(Kipf et al. 2018) in three dimensions, with the constants of the published code. They are simulated
here, from random numbers that are drawn in its order: by default, with its seed, these are the
published trajectories, to rounding.

Deviations: nothing is held in a box (the published simulation reflects only the initial positions,
at 5 standard deviations, which with its seed none reaches), and the density of the start is kept in
any dimension, not only in 3.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset

from symgnn._argument_checks import check_count, check_positive
from symgnn.data._npz import load_npz
from symgnn.graphs.budget import require_memory
from symgnn.progress import OnProgress, bar

SPLITS = ("train", "validation", "test")
#: How many trajectories of the first splits are drawn, at least.
DRAWN = (10_000, 2_000)
FRAMES = 49
EVERY = 100
STEP = 0.001
SPEED = 0.5
#: A force times the step, that is a change of velocity, is cut off here, per component.
LARGEST_KICK = 0.1
#: Bytes for each edge while graphs are made, measured.
EACH_EDGE = 50


class Trajectories(NamedTuple):
    """T trajectories of N particles in n dimensions, at F frames, in float64."""

    pos: Tensor  # [T, F, N, n]
    vel: Tensor  # [T, F, N, n]
    charge: Tensor  # [T, N]


def simulate_charged(
    count: int,
    *,
    seed: int | Sequence[int],
    skip: int = 0,
    particles: int = 5,
    dimension: int = 3,
    frames: Sequence[int] = range(FRAMES),
    every: int = EVERY,
    step: float = STEP,
    on_progress: OnProgress | None = None,
) -> Trajectories:
    """Trajectories of charged particles from random states, by :func:`integrate_charged`.

    Charges are +1 or -1 with equal probability. Positions are normal with mean 0 and deviation
    (N / 5)^(1/n); velocities have norm 0.5 and a uniform direction.

    Args:
        count: The number T of trajectories.
        seed: The same seed gives the same states, and with a smaller `count` the first of them.
        skip: The number of states that are skipped before the first.
        particles: The number N of particles.
        dimension: The number n of coordinates.
        frames, every, step, on_progress: As for :func:`integrate_charged`.

    Returns:
        Positions and velocities in the frames, and charges.

    Shapes:
        pos `[T, F, N, n]`, vel `[T, F, N, n]`, charge `[T, N]` for F frames.

    Example:
        >>> found = symgnn.data.simulate_charged(2, seed=0, frames=[0, 1], every=10)
        >>> found.pos.shape
        torch.Size([2, 2, 5, 3])
    """
    count = check_count("count", count, 1)
    skip = check_count("skip", skip, 0)
    particles = check_count("particles", particles, 1)
    dimension = check_count("dimension", dimension, 1)
    for part in seed if isinstance(seed, Sequence) else (seed,):
        if check_count("seed", part, 0) >= 2**32:
            raise ValueError(f"seed: is {part}; pass an integer below 2**32")
    drawn, normal = np.random.RandomState(seed), np.empty((count, 2, dimension, particles))
    charge = np.empty((count, particles))
    for number in range(-skip, count):
        signs = drawn.random_sample(particles)
        # two states at the start, then noise for all frames, of which there is none
        values = drawn.standard_normal((2 + 2 * FRAMES, dimension, particles))
        if number >= 0:
            charge[number], normal[number] = np.where(signs < 0.5, -1.0, 1.0), values[:2]
    pos, vel = torch.from_numpy(normal).transpose(2, 3).unbind(1)
    return integrate_charged(
        pos * (particles / 5) ** (1 / dimension),
        vel * (SPEED / vel.norm(dim=2, keepdim=True)),
        torch.from_numpy(charge),
        frames=frames,
        every=every,
        step=step,
        on_progress=on_progress,
    )


def integrate_charged(
    pos: Tensor,
    vel: Tensor,
    charge: Tensor,
    *,
    frames: Sequence[int] = range(FRAMES),
    every: int = EVERY,
    step: float = STEP,
    on_progress: OnProgress | None = None,
) -> Trajectories:
    """Integrate trajectories of charged particles from initial positions and velocities.

    Particles have mass 1; the force on i is F_i = sum_j q_i q_j (x_i - x_j) / |x_i - x_j|^3, where
    pairs at the same position are skipped. Each step is v += step F(x), then x += step v, so v is
    the velocity half a step before x. Frame k is the state after (k + 1) `every` steps: the initial
    state is not a frame. Only the given `frames` are kept, and nothing is computed after the last.

    As in the published program, each component of F is clipped at 0.1 / step. If this happens (for
    particles nearer than about 0.1), momentum is not conserved, and the trajectory depends on the
    axes.

    Args:
        pos: Positions at the beginning.
        vel: Velocities, half a step before.
        charge: Charges.
        frames: The numbers of the frames to keep, in increasing order.
        every: Steps between frames.
        step: The time step.
        on_progress: Called with the number of steps done and the total number.

    Returns:
        Positions and velocities in the frames, and charges.

    Shapes:
        pos `[T, N, n]`, vel `[T, N, n]`, charge `[T, N]` -> pos and vel `[T, F, N, n]`.

    Example:
        >>> pos, vel, charge = torch.zeros(1, 1, 2), torch.ones(1, 1, 2), torch.ones(1, 1)
        >>> found = symgnn.data.integrate_charged(pos, vel, charge, frames=[0], every=1000)
        >>> found.pos[0, 0, 0].round(decimals=3)
        tensor([1., 1.], dtype=torch.float64)
    """
    _check_state(pos, vel, charge)
    every = check_count("every", every, 1)
    listed = frames if isinstance(frames, Sequence) else ()
    wanted = [check_count("frames", frame, 0) for frame in listed]
    if not wanted or any(first >= second for first, second in pairwise(wanted)):
        raise ValueError(f"frames: is {frames!r}; pass a list of increasing integers")
    check_positive("step", step, f"such as {STEP}")

    # trajectories last, [N, n, T], so that each operation runs over contiguous memory
    require_memory(
        f"pos: {pos.shape[0]:,} trajectories of {pos.shape[1]:,} particles have {{count}} pairs",
        pos.shape[0] * pos.shape[1] * (pos.shape[1] - 1) // 2,
        8,
        "give fewer particles, or fewer trajectories at once",
    )
    q = _array(charge).T.copy()
    x, v = (_array(value).transpose(1, 2, 0).copy() for value in (pos, vel))
    products = [q[i] * q[i + 1 :] for i in range(len(q) - 1)]
    limit = LARGEST_KICK / step
    kept_pos, kept_vel = (np.empty((len(pos), len(wanted), *pos.shape[1:])) for _ in range(2))
    total = (wanted[-1] + 1) * every
    kept = 0
    for done in range(1, total + 1):
        v += step * np.clip(_forces(x, products), -limit, limit)
        x += step * v
        if done % every == 0:
            if done == (wanted[kept] + 1) * every:
                kept_pos[:, kept], kept_vel[:, kept] = x.transpose(2, 0, 1), v.transpose(2, 0, 1)
                kept += 1
            if on_progress is not None:
                on_progress(done, total)
    return Trajectories(
        torch.from_numpy(kept_pos), torch.from_numpy(kept_vel), torch.from_numpy(q.T.copy())
    )


def _forces(x: np.ndarray, products: Sequence[np.ndarray]) -> np.ndarray:
    """`[N, n, T]`; each pair once, `products[i]` being q_i q_j for all j > i, `[N - i - 1, T]`."""
    forces = np.zeros_like(x)
    for i, product in enumerate(products):
        apart = x[i] - x[i + 1 :]
        square = (apart * apart).sum(axis=1)
        np.maximum(square, 1e-150, out=square)  # particles at the same place: 0, not 0 / 0
        apart *= (product / (square * np.sqrt(square)))[:, None]
        forces[i] += apart.sum(axis=0)
        forces[i + 1 :] -= apart
    return forces


class NBody(InMemoryDataset):
    """Charged particles at one frame; the target is their positions at a later frame.

    Each graph joins all ordered pairs of N particles and has

    - `pos`, `vel` `[N, n]`: position and velocity at frame `start`
    - `x` `[N, 1]`: the speed |vel|
    - `charge` `[N, 1]`: +1 or -1
    - `edge_attr` `[E, 1]`: the product of the charges at both ends
    - `y` `[N, n]`: position at frame `stop`

    The defaults are EGNN's: 3000, 2000 and 2000 trajectories, and 10 frames (1000 steps, one unit
    of time) between input and target. As there, the splits are drawn one after the other, and
    10,000 trajectories are drawn for the training set, however many are used.

    In a fifth of the trajectories, components of forces are clipped (:func:`integrate_charged`)
    between these two frames. The target is then only approximately equivariant: over rotations of
    the input, its variance is 0.002 (mean of the test set, 8 rotations), about the smallest mean
    squared error that an equivariant model can have.

    With `root`, the simulated trajectories are kept there, in one file per split and settings. A
    progress bar is shown if it takes more than two seconds and stderr is a terminal; `progress`
    overrides this.
    """

    def __init__(
        self,
        split: str,
        *,
        root: str | os.PathLike[str] | None = None,
        train: int = 3000,
        validation: int = 2000,
        test: int = 2000,
        seed: int = 43,
        particles: int = 5,
        dimension: int = 3,
        start: int = 30,
        stop: int = 40,
        dtype: torch.dtype = torch.float32,
        transform: object = None,
        progress: bool | None = None,
    ) -> None:
        super().__init__(None, transform)
        if split not in SPLITS:
            raise ValueError(f"split: {split!r} is not known; choose from {', '.join(SPLITS)}")
        sizes = {"train": train, "validation": validation, "test": test}
        count = [check_count(name, size, 1) for name, size in sizes.items()][SPLITS.index(split)]
        seed = check_count("seed", seed, 0)
        particles = check_count("particles", particles, 1)
        dimension = check_count("dimension", dimension, 1)
        start = check_count("start", start, 0)
        stop = check_count("stop", stop, start + 1)
        require_memory(
            f"particles: {count:,} complete graphs of {particles:,} have {{count}} edges",
            count * particles * (particles - 1),
            EACH_EDGE,
            "give fewer particles, or fewer graphs (limit)",
        )

        used = (max(train, DRAWN[0]), max(validation, DRAWN[1]))
        skip = sum(used[: SPLITS.index(split)])

        def simulate() -> Trajectories:
            with bar(f"{count} trajectories, {split}", progress) as on_progress:
                return simulate_charged(
                    count,
                    seed=seed,
                    skip=skip,
                    particles=particles,
                    dimension=dimension,
                    frames=(start, stop),
                    on_progress=on_progress,
                )

        if root is None:
            found = simulate()
        else:
            shape = (count, 2, particles, dimension)
            # v2: to be raised when the same settings give other trajectories
            which = f"{split}-{'x'.join(map(str, shape))}-{start}-{stop}-seed{seed}-{skip}"
            name = f"nbody-v2-{which}.npz"
            found = _cached(Path(root).expanduser() / name, shape, simulate)
        self.data, self.slices = self.collate(_graphs(found, dtype))


def _graphs(trajectories: Trajectories, dtype: torch.dtype) -> list[Data]:
    """One graph per trajectory, from its first frame to its last."""
    pos, vel, y = trajectories.pos[:, 0], trajectories.vel[:, 0], trajectories.pos[:, -1]
    charge = trajectories.charge[:, :, None]
    edge_index = (~torch.eye(pos.shape[1], dtype=torch.bool)).nonzero().T.contiguous()
    values = {
        "x": vel.norm(dim=2, keepdim=True),
        "pos": pos,
        "vel": vel,
        "charge": charge,
        "edge_attr": charge[:, edge_index[0]] * charge[:, edge_index[1]],
        "y": y,
    }
    rows = zip(*(value.to(dtype) for value in values.values()), strict=True)
    return [Data(edge_index=edge_index, **dict(zip(values, row, strict=True))) for row in rows]


def _cached(
    path: Path, shape: tuple[int, ...], simulate: Callable[[], Trajectories]
) -> Trajectories:
    """Read positions of the given shape from a file, which is written if it is missing."""
    if path.exists():
        return _read(path, shape)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"cannot be a directory ({error.strerror})"
        raise ValueError(f"root: {path.parent} {reason}; pass another") from None
    found = simulate()
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            np.savez(file, **{name: part.numpy() for name, part in found._asdict().items()})
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return found


def _read(path: Path, shape: tuple[int, ...]) -> Trajectories:
    """Read a file of :func:`_cached`."""
    try:
        arrays = load_npz(path)
        found = Trajectories(*(torch.from_numpy(arrays[name]) for name in Trajectories._fields))
        if [tuple(part.shape) for part in found] != [shape, shape, (shape[0], shape[2])]:
            raise ValueError("its arrays have other shapes")
    except Exception as error:  # a damaged archive raises almost anything
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise ValueError(
            f"{path}: cannot be read ({reason}); delete it, and it will be simulated again"
        ) from None
    return found


def _array(value: Tensor) -> np.ndarray:
    return value.detach().to("cpu", torch.float64).numpy()


def _check_state(pos: Tensor, vel: Tensor, charge: Tensor) -> None:
    if pos.dim() != 3 or 0 in pos.shape:
        shape = tuple(pos.shape)
        raise ValueError(f"pos: has shape {shape}; pass [T, N, n], each at least 1")
    for name, value, needed in (("vel", vel, pos.shape), ("charge", charge, pos.shape[:2])):
        if value.shape != needed:
            shape = tuple(value.shape)
            raise ValueError(f"{name}: shape {shape} does not fit pos; pass {tuple(needed)}")
    for name, value in (("pos", pos), ("vel", vel), ("charge", charge)):
        if not value.isfinite().all():
            raise ValueError(f"{name}: some values are not finite; pass finite ones")
