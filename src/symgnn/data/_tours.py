"""Short tours through points of the plane, by fast-tsp."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

#: The largest distance of fast-tsp: integers of 16 bits.
_LARGEST = 65_535
SECONDS_PER_NODE = 0.004


def solve(points: np.ndarray, seconds_per_node: float = SECONDS_PER_NODE) -> np.ndarray:
    """A tour through the points `[N, n]`: their order, `[N]`, from 0 on towards its nearer end.

    The solver searches at random for as long as it is told, so two calls agree where both found the
    shortest tour: with the default, for nearly all instances of up to 500 nodes. It sees distances
    rounded to 16 bits; pairs of edges that are then better exchanged, are.
    """
    try:
        import fast_tsp
    except ImportError:
        raise ValueError("fast-tsp is not installed; pip install symgnn[tsp]") from None
    length = cdist(points, points)
    rounded = np.rint(length * (_LARGEST / (length.max() or 1.0))).astype(np.int64)
    seconds = seconds_per_node * len(points)
    tour = two_opt(length, np.array(fast_tsp.find_tour(rounded, duration_seconds=seconds)))
    if not np.array_equal(np.sort(tour), np.arange(len(points))):
        raise ValueError(f"fast-tsp gave no tour of {len(points)} nodes; try another version of it")
    tour = np.roll(tour, -int(np.flatnonzero(tour == 0)[0]))
    return tour if tour[1] < tour[-1] else np.roll(tour[::-1], 1)


def tour_length(length: np.ndarray, tour: np.ndarray) -> float:
    """Of a closed tour `[N]`, by the lengths `[N, N]`."""
    return float(length[tour, np.roll(tour, -1)].sum())


def two_opt(length: np.ndarray, tour: np.ndarray) -> np.ndarray:
    """The tour, with pairs of edges exchanged as long as that makes it shorter."""
    while True:
        after = np.roll(tour, -1)
        edge = length[tour, after]
        gain = edge[:, None] + edge - length[np.ix_(tour, tour)] - length[np.ix_(after, after)]
        np.fill_diagonal(gain, 0.0)
        first, second = sorted(divmod(int(gain.argmax()), len(tour)))
        if gain[first, second] <= 1e-12:
            return tour
        tour = tour.copy()
        tour[first + 1 : second + 1] = tour[first + 1 : second + 1][::-1]
