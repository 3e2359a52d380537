"""A training step: forward, backward and Adam, in single precision."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from symgnn.nn import Model, build

HIDDEN, LAYERS = 64, 2


def training_step(
    loss: Callable[[], Tensor], parameters: Iterable[Tensor], inputs: Sequence[Tensor] = ()
) -> Callable[[], None]:
    """The loss, its gradients by parameters and inputs, and a step of Adam on the parameters."""
    optimiser = torch.optim.Adam(parameters, 1e-3, fused=True)

    def step() -> None:
        optimiser.zero_grad()
        for value in inputs:
            value.grad = None
        loss().backward()
        optimiser.step()

    return step


def model_step(model: Model, data: Data, run: nn.Module | None = None) -> Callable[[], None]:
    """A step of a model, or of what `run` makes of it, on a graph whose topology is made before."""
    data = data.clone()
    data.topology = model.topology(data)
    apply = model if run is None else run
    return training_step(lambda: apply(data).square().mean(), model.parameters())


def network(block: str, batch: Batch, **options: Any) -> Model:
    """Two layers of a block with 64 numbers everywhere, for a graph task on this batch."""
    torch.manual_seed(0)
    widths = {"node_features": batch.x, "edge_features": batch.edge_attr}
    given: dict[str, Any] = {
        name: 0 if value is None else value.shape[1] for name, value in widths.items()
    }
    given |= {"hidden": HIDDEN, "mlp_hidden": HIDDEN, "layers": LAYERS, "graph_state": False}
    given |= {"aggregation": "sum", "dimension": batch.pos.shape[1], "outputs": 10}
    return build(block, **(given | options))
