"""Cases of the tests test_formats, test_table_formats."""

import csv
from pathlib import Path

import numpy as np
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

few = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


coordinate = st.floats(-50, 50, width=32)


@st.composite
def points(draw: st.DrawFn, n: int = 3, least: int = 1) -> np.ndarray:
    """Up to 12 different points."""
    count = draw(st.integers(least, 12))
    return draw(arrays(np.float64, (count, n), elements=coordinate))


def write_csv(path: Path, header: list[str], rows: list) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def pairs(edge_index: torch.Tensor) -> set[tuple[int, int]]:
    return {(int(a), int(b)) for a, b in edge_index.T}


def both(*edges: tuple[int, int]) -> set[tuple[int, int]]:
    return {pair for a, b in edges for pair in ((a, b), (b, a))}
