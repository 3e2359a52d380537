"""Random networks on random graphs: the fast engine against the reference path."""

from __future__ import annotations

from random import Random

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from properties.networks import random_graph, random_network, with_features
from symgnn.nn import Engine, Model
from symgnn.nn._engine.policy import using_policy
from symgnn.nn.state import Reference

POLICIES: dict[str, dict[str, int]] = {
    "few rows": {},
    "many rows": {"few": 0},
    "tiles": {"few": 0, "worth_tiles": 0, "tile": 60},
}


def derivatives(model: Model, data: Data) -> list[Tensor]:
    data = data.clone()
    data.pos = data.pos.clone().requires_grad_()
    inputs = [data.pos, *(p for p in model.parameters() if p.requires_grad)]
    out = model(data)
    found = [out]
    value = out.sin().sum()
    for _ in range(2):
        if not value.requires_grad:
            break
        grads = torch.autograd.grad(value, inputs, create_graph=True, allow_unused=True)
        grads = [
            torch.zeros_like(i) if g is None else g for i, g in zip(inputs, grads, strict=True)
        ]
        found += grads
        value = sum((grad.square().sum() for grad in grads), torch.zeros((), dtype=out.dtype))
    return [each.detach() for each in found]


def check(seed: int) -> bool:
    """Whether there was anything to compare."""
    random = Random(seed)
    case, _ = random_network(random)
    if case is None:
        return False
    n = case.options["dimension"]
    data = with_features(random_graph(random, n, 1.0, generic=True), case, random)
    model = case.model
    model.engine = Reference()
    expected = derivatives(model, data)
    for name, policy in POLICIES.items():
        for chunk in (None, 3):
            model.engine = Engine(chunk)
            with using_policy(**policy):
                found = derivatives(model, data)
            assert len(found) == len(expected)
            for one, other in zip(found, expected, strict=True):
                if not other.numel() or not bool(other.isfinite().all()):
                    continue
                scale = max(float(other.abs().max()), 1.0)
                error = float((one - other).abs().max()) / scale
                assert error < 1e-8, f"seed {seed}, {name}, chunk {chunk}: {error:.1e} in {case}"
    return True


def test_random_networks() -> None:
    assert sum(check(seed) for seed in range(60)) > 30


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_a_thousand_random_networks(block: int) -> None:
    assert sum(check(seed) for seed in range(1000 + 100 * block, 1100 + 100 * block)) > 50
