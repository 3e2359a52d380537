"""Cases of the tests test_degenerate, test_deep_stacks, test_refusals."""

import itertools

import pytest
import torch

from helpers import (
    random_model,
)
from symgnn.nn import ARCHITECTURES

MAPS = ("identity", "neighbour-sum", "egcn")


DTYPES = {"float32": torch.float32, "float64": torch.float64}


# egcn over all pairs and angles on edges do not go together
MODELS = [
    (name, psi)
    for name, psi in itertools.product(ARCHITECTURES, MAPS)
    if (name, psi) != ("agn-to-edges", "egcn")
]


EACH_MODEL = pytest.mark.parametrize(
    ("architecture", "coordinate_map"), MODELS, ids=["-".join(m) for m in MODELS]
)


EACH_DTYPE = pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)


NO_EDGES = torch.zeros(2, 0, dtype=torch.long)


def model_of(architecture, coordinate_map, task, aggregation, n=3, **options):
    return random_model(
        architecture,
        coordinate_map=coordinate_map,
        task=task,
        aggregation=aggregation,
        dimension=n,
        noise=0.05,
        **options,
    )
