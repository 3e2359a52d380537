"""Indices of graphs in parts: at random, in whole groups, or in folds."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import torch

#: So many random orders of the groups are tried; the one nearest the wanted sizes is taken.
ORDERS = 100


def divide(
    labels: Sequence[int], fractions: tuple[float, float, float], seed: int
) -> list[list[int]]:
    """Indices of the three parts, each sorted, with the same mixture of labels."""
    sizes = part_sizes(len(labels), fractions)
    order = stratified_order(labels, seed)
    first, second = sizes[0], sizes[0] + sizes[1]
    return [sorted(order[:first]), sorted(order[first:second]), sorted(order[second:])]


def divide_folds(labels: Sequence[int], k: int, seed: int) -> list[list[int]]:
    """Indices of k folds, each sorted, of sizes that differ by 1 at most, as stratified."""
    if len(labels) < k:
        raise ValueError(f"k: is {k}, but there are {len(labels)} graphs; give fewer folds")
    order = np.array(stratified_order(labels, seed))
    return [sorted(part.tolist()) for part in np.array_split(order, k)]


def stratified_order(labels: Sequence[int], seed: int) -> list[int]:
    """A random order of the indices of which every stretch has the same mixture of labels."""
    order = _shuffled(len(labels), seed)
    count: dict[int, int] = {}
    for label in labels:
        count[label] = count.get(label, 0) + 1
    # the r-th of m graphs of a class stands at (r + 1/2) / m, so a cut takes as much of each class
    seen: dict[int, int] = {}
    place: dict[int, float] = {}
    for index in order:
        label = labels[index]
        place[index] = (seen.get(label, 0) + 0.5) / count[label]
        seen[label] = seen.get(label, 0) + 1
    order.sort(key=place.__getitem__)
    return order


def part_sizes(count: int, fractions: tuple[float, float, float]) -> list[int]:
    """How many of `count` each part gets: rounded, and at least 1 where a part is asked for."""
    wanted = sum(fraction > 0 for fraction in fractions)
    if count < wanted:
        raise ValueError(
            f"fractions: {count} graphs cannot be divided into {wanted} parts; "
            "give more graphs, or a fraction of 0 to a part"
        )
    sizes = [max(round(fraction * count), 1) if fraction else 0 for fraction in fractions]
    while sum(sizes) != count:
        step = 1 if sum(sizes) < count else -1
        sizes[sizes.index(max(sizes))] += step
    return sizes


def divide_groups(
    keys: Sequence[Hashable],
    fractions: tuple[float, float, float],
    seed: int | None,
    what: str = "group",
) -> list[list[int]]:
    """Indices of the three parts, each sorted; all graphs with the same key are in one part.

    Args:
        keys: of each graph, the group that it belongs to.
        fractions: how much goes into each part; a part that is asked for gets at least one group.
        seed: of 100 random orders of the groups, the one is cut into parts that comes nearest to
            the fractions. With None, the order is by size, the largest group first, and groups of
            one size by their key; the training part has the largest ones.
        what: what messages call a group.
    """
    groups = _groups(keys)
    wanted = part_sizes(len(keys), fractions)
    parts = sum(size > 0 for size in wanted)
    if len(groups) < parts:
        raise ValueError(
            f"column: there are {len(groups)} {what}s ({_some(groups)}), which cannot be divided "
            f"into {parts} parts; choose another column, or other fractions"
        )
    largest = max(groups, key=lambda key: len(groups[key]))
    if len(groups[largest]) > max(wanted):
        share = len(groups[largest]) / len(keys)
        raise ValueError(
            f"fractions: the {what} {str(largest)!r} has {len(groups[largest])} of {len(keys)} "
            f"graphs, but the largest part has {max(wanted)}; give one fraction of at least "
            f"{np.ceil(100 * share) / 100:g}, or choose another column"
        )
    names = list(groups)
    if seed is None:
        order = sorted(range(len(names)), key=lambda g: (-len(groups[names[g]]), str(names[g])))
        ends = _cut([len(groups[names[g]]) for g in order], wanted)
    else:
        order, ends = _nearest_cut([len(groups[name]) for name in names], wanted, seed)
    starts = [0, *ends[:-1]]
    return [
        sorted(index for g in order[start:end] for index in groups[names[g]])
        for start, end in zip(starts, ends, strict=True)
    ]


def divide_groups_folds(
    keys: Sequence[Hashable], k: int, seed: int, what: str = "group"
) -> list[list[int]]:
    """Indices of k folds, each sorted; all graphs with the same key are in one fold.

    The groups, the largest first, go one after the other into the fold that is smallest then;
    groups of one size are in random order.
    """
    groups = _groups(keys)
    if len(groups) < k:
        raise ValueError(
            f"k: is {k}, but there are {len(groups)} {what}s ({_some(groups)}); give fewer folds"
        )
    names = list(groups)
    largest = max(names, key=lambda name: len(groups[name]))
    if 2 * len(groups[largest]) > len(keys):
        raise ValueError(
            f"column: the {what} {str(largest)!r} has {len(groups[largest])} of {len(keys)} "
            "graphs, more than all others together; choose another column"
        )
    order = _shuffled(len(names), seed)
    order.sort(key=lambda g: -len(groups[names[g]]))  # keeps the random order of equal sizes
    folds: list[list[int]] = [[] for _ in range(k)]
    for g in order:
        min(folds, key=len).extend(groups[names[g]])
    return [sorted(fold) for fold in folds]


def _groups(keys: Sequence[Hashable]) -> dict[Hashable, list[int]]:
    """The indices of each group, in the order in which the groups occur."""
    groups: dict[Hashable, list[int]] = {}
    for index, key in enumerate(keys):
        groups.setdefault(key, []).append(index)
    return groups


def _nearest_cut(
    sizes: Sequence[int], wanted: Sequence[int], seed: int
) -> tuple[list[int], list[int]]:
    """Of random orders of groups, the one whose parts are nearest to the wanted sizes."""
    generator = torch.Generator().manual_seed(seed)
    best: tuple[list[int], list[int]] = ([], [])
    least = np.inf
    for _ in range(ORDERS):
        order = torch.randperm(len(sizes), generator=generator).tolist()
        lengths = [sizes[g] for g in order]
        ends = _cut(lengths, wanted)
        total = np.concatenate([[0], np.cumsum(lengths)])[[0, *ends]]
        off = float(np.abs(np.diff(total) - np.array(wanted)).sum())
        if off < least:
            best, least = (order, ends), off
        if not least:
            break
    return best


def _cut(sizes: Sequence[int], wanted: Sequence[int]) -> list[int]:
    """Where each part ends in a row of groups: nearest to its size, with at least one group."""
    total = np.cumsum(sizes)
    ends: list[int] = []
    start, aim = 0, 0
    for number, size in enumerate(wanted):
        aim += size
        later = sum(other > 0 for other in wanted[number + 1 :])
        if not size:
            end = start
        elif not later:
            end = len(sizes)
        else:
            possible = range(start + 1, len(sizes) - later + 1)
            end = min(possible, key=lambda e: abs(int(total[e - 1]) - aim))
        ends.append(end)
        start = end
    return ends


def _shuffled(count: int, seed: int) -> list[int]:
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed)).tolist()


def _some(groups: Sequence[Hashable] | dict[Hashable, list[int]]) -> str:
    """The first few names."""
    names = [str(name) for name in groups]
    return ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
