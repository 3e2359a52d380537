"""Cases of the tests test_manners, test_compile_and_types, test_conv."""

import torch
from torch_geometric.data import Batch

import symgnn
from symgnn.nn import build


def solids() -> Batch:
    return Batch.from_data_list(symgnn.data.polytopes(3))


def small(name: str, **options: object) -> symgnn.nn.Model:
    torch.manual_seed(0)
    settings = {"dimension": 3, "hidden": 8, "outputs": 5, "aggregation": "sum"}
    settings |= {"init": "torch", **options}
    return build(name, **settings)  # type: ignore[arg-type]
