"""Movements of rows between domains as sparse matrices, with their transposes."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Movement(NamedTuple):
    """A sparse matrix M of zeros and ones that gathers or sums rows, with its transpose.

    Row i of `M rows` is the sum of the rows `reads[offsets[i] : offsets[i + 1]]`; `back_reads`
    and `back_offsets` describe the transpose in the same way. A lift (gather) has one entry in each
    row of M and no offsets; the sum is its transpose, and each is the other's backward pass.
    """

    reads: Tensor  # [K]
    offsets: Tensor  # [rows out + 1], or [0] for a lift
    back_reads: Tensor  # [K]
    back_offsets: Tensor  # [rows in + 1]

    @property
    def is_lift(self) -> bool:
        """Whether each row reads exactly one."""
        return self.offsets.shape[0] == 0

    @property
    def size(self) -> int:
        """How many rows there are to read."""
        return self.back_offsets.shape[0] - 1

    @property
    def T(self) -> Movement:
        """The transpose."""
        return Movement(self.back_reads, self.back_offsets, self.reads, self.offsets)

    def part(self, out: slice, into: slice) -> Movement:
        """The rows `out` of M, which read none but the rows `into`; all rows read as many."""
        each = 1 if self.is_lift else self.reads.shape[0] // (self.offsets.shape[0] - 1)
        entries = slice(each * out.start, each * out.stop)
        return Movement(
            self.reads[entries] - into.start,
            self.offsets[: out.stop - out.start + 1],
            self.back_reads[entries] - out.start,
            self.back_offsets[into.start : into.stop + 1] - entries.start,
        )


class EdgeEnds(NamedTuple):
    """From nodes to edges; `target.T` sums the edges of each target."""

    target: Movement
    source: Movement
    both: Movement  # the sum of both; row 2 i is what node i adds as a target, 2 i + 1 as a source


class RayEnds(NamedTuple):
    """From nodes to rays; `vertex.T` sums the rays of each vertex."""

    vertex: Movement
    neighbour: Movement
    both: Movement  # the sum of both; row 2 i is what node i adds as a vertex, 2 i + 1 otherwise


class AngleRays(NamedTuple):
    """From rays to angles; `first.T` sums the angles of each first ray."""

    first: Movement
    second: Movement
    both: Movement  # the sum of both; row 2 i is what ray i adds as the first, 2 i + 1 otherwise


def lift_by(index: Tensor, size: int) -> Movement:
    """The lift of `size` rows to where `index [L]` reads them."""
    return _narrow(Movement(index, index[:0], *_sorted(index, size)))


def gather_by(index: Tensor, size: int) -> Movement:
    """The sum of the rows by where `index [L]` sends them; those sent to `size` are left out."""
    kept = index < size
    order, start = _sorted(index, size + 1)
    back = torch.cat([kept.new_zeros(1).long(), kept.cumsum(0)])
    return _narrow(Movement(order[: int(start[-2])], start[:-1], index[kept], back))


def two_lifts(one: Tensor, other: Tensor, size: int) -> tuple[Movement, Movement, Movement]:
    """The lifts by `one [L]` and `other [L]`, both among `size` rows, and the sum of both."""
    first = Movement(one, one[:0], *_sorted(one, size))
    second = Movement(other, other[:0], *_sorted(other, size))
    both = _interleaved(first, second)
    return _narrow(first), _narrow(second), _narrow(both)


def pairs_of(degree: Tensor, number: Tensor) -> AngleRays:
    """All ordered pairs of different rays of the same vertex, sorted by first and second ray.

    Rays stand vertex by vertex: `degree [R]` is how many their vertex has, `number [R]` which of
    them each is.
    """
    count = len(degree)
    start = torch.cat([degree.new_zeros(1), (degree - 1).cumsum(0, dtype=degree.dtype)])
    total = int(start[-1])
    rows = torch.arange(total, device=degree.device, dtype=degree.dtype)
    rays = torch.arange(count, device=degree.device, dtype=degree.dtype)
    first = torch.repeat_interleave(rays, degree - 1, output_size=total)
    begin, j = start.index_select(0, first), number.index_select(0, first)
    k = rows - begin
    k += k >= j  # a ray makes no pair with itself
    second = first - j + k
    twin = start.index_select(0, second) + j
    twin -= (j > k).to(twin.dtype)  # where the same two stand the other way round
    of_first = Movement(first, rows[:0], rows, start)
    of_second = Movement(second, rows[:0], twin, start)
    # each ray is as often a first as a second one: its places as a second one follow at once
    back = rows.new_empty(2 * total)
    back[begin.add_(rows)] = rows
    back[begin.add_(degree.index_select(0, first)).sub_(1)] = twin
    starts = torch.stack([2 * start[:-1], start[:-1] + start[1:]], 1).flatten()
    starts = torch.cat([starts, 2 * start[-1:]])
    both = torch.stack([2 * first, 2 * second + 1], 1).flatten()
    offsets = torch.arange(0, 2 * total + 1, 2, device=degree.device, dtype=degree.dtype)
    return AngleRays(of_first, of_second, Movement(both, offsets, back, starts))


def _interleaved(one: Movement, other: Movement) -> Movement:
    """Both lifts, of rows that alternate: for the one, for the other."""
    counts = torch.stack([one.back_offsets.diff(), other.back_offsets.diff()], 1)
    starts = torch.zeros_like(one.back_offsets[:1].expand(counts.numel() + 1))
    torch.cumsum(counts.flatten(), 0, out=starts[1:])
    back = torch.cat([torch.empty_like(one.reads), torch.empty_like(other.reads)])
    rows = len(one.reads)
    places = torch.arange(rows + 1, device=back.device, dtype=back.dtype)
    for end, movement in enumerate((one, other)):
        # sorted by where they go, each moves on by what stands before it of the other end
        shift = starts[end:-1:2] - movement.back_offsets[:-1]
        shift = torch.repeat_interleave(shift, counts[:, end], output_size=rows)
        back[places[:-1] + shift] = movement.back_reads
    index = torch.stack([2 * one.reads, 2 * other.reads + 1], 1).flatten()
    return Movement(index, 2 * places, back, starts)


def _sorted(index: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Where each of `size` numbers stands in `index`: the places, and where those of each start."""
    start = index.new_zeros(size + 1)
    torch.cumsum(torch.bincount(index, minlength=size), 0, out=start[1:])
    if bool((index.diff() >= 0).all()):
        return torch.arange(len(index), device=index.device), start
    return torch.argsort(index, stable=True), start


def narrow_type(count: int) -> torch.dtype:
    """The smallest type for numbers of this many things; twice as many are counted somewhere."""
    return torch.int32 if count < 2**30 else torch.int64


def _narrow(movement: Movement) -> Movement:
    kind = narrow_type(max(len(movement.reads), len(movement.back_offsets)))
    return Movement(*(part.to(kind) for part in movement))
