"""Cases of the tests test_peers, test_peers_as_models."""

import torch
from torch import Tensor

#: The largest difference, relative to the largest number compared.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-6}


def difference(a: Tensor, b: Tensor) -> float:
    return float((a - b).detach().abs().max() / b.detach().abs().max().clamp(min=1e-30))
