"""One initialisation of a model, or several as one computation, behind one face."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from symgnn.topology import Topology
from symgnn.train.seeds import Seeds


class Members(nn.Module):
    """S initialisations of the model that `make` builds, one for each seed.

    A call gives `[S, ...]`. One alone is an ordinary model; several are stacked, so that each
    parameter has a leading axis of seeds (:class:`symgnn.train.Seeds`).
    """

    def __init__(self, make: Callable[[], nn.Module], seeds: Sequence[int]) -> None:
        super().__init__()
        self.seeds = list(seeds)
        self._stack = Seeds(make, self.seeds)
        self.model = self._stack.model if len(self.seeds) == 1 else None
        if self.model is None:
            names = list(self._stack.parameters)
            self.stacked = nn.ParameterList(self._stack.parameters.values())
            self._stack.parameters = dict(zip(names, self.stacked, strict=True))

    def __len__(self) -> int:
        return len(self.seeds)

    def forward(self, data: Data) -> Tensor:
        """The outputs `[S, ...]`."""
        if self.model is not None:
            return self.model(data).unsqueeze(0)
        if self._stack.model.training != self.training:  # it is none of this module's children
            self._stack.model.train(self.training)
        return self._stack(data)

    @property
    def topology(self) -> Callable[[Data], Topology] | None:
        """What makes the topology of a batch, where the model has one."""
        return getattr(self._stack.model, "topology", None)

    def _apply(self, function: Callable[[Tensor], Tensor], recurse: bool = True) -> Members:
        super()._apply(function, recurse)
        self._stack.buffers = {k: function(b) for k, b in self._stack.buffers.items()}
        return self

    def clip(self, largest: float) -> None:
        """Make the gradient of each member at most this long."""
        gradients = [p.grad for p in self.parameters() if p.grad is not None]
        if not gradients:
            return
        if self.model is not None:
            gradients = [g.unsqueeze(0) for g in gradients]
        squares = torch.stack([g.flatten(1).square().sum(1) for g in gradients])
        factor = (largest / squares.sum(0).sqrt().clamp(min=1e-12)).clamp(max=1.0)
        for gradient in gradients:
            gradient *= factor.view(-1, *[1] * (gradient.dim() - 1))

    def states(self) -> list[dict[str, Tensor]]:
        """The weights of each member, on the CPU, as an ordinary model has them."""
        if self.model is not None:
            states = [self.model.state_dict()]
        else:
            states = [self._stack.member(k) for k in range(len(self))]
        return [{k: v.detach().cpu().clone() for k, v in state.items()} for state in states]

    @torch.no_grad()
    def load_states(self, states: Sequence[dict[str, Any]]) -> None:
        """Take weights over; they have to be of as many members."""
        if self.model is not None:
            self.model.load_state_dict(states[0])
            return
        for name, parameter in self._stack.parameters.items():
            parameter.copy_(torch.stack([state[name] for state in states]))
