"""Cases of the tests test_nbody, test_nbody_set."""

import torch
from torch import Tensor

SMALL = {"train": 4, "validation": 3, "test": 2, "start": 0, "stop": 1}


State = tuple[Tensor, Tensor, Tensor]


def double(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def pair(product: int, distance: float = 1.0) -> State:
    """Two particles at rest on the first axis, with the given product of their charges."""
    pos = double([[[0.0, 0.0, 0.0], [distance, 0.0, 0.0]]])
    return pos, torch.zeros_like(pos), double([[1.0, product]])


def distance(pos: Tensor) -> Tensor:
    """`[F]`, of the first two particles of the first trajectory."""
    return (pos[0, :, 0] - pos[0, :, 1]).norm(dim=-1)
