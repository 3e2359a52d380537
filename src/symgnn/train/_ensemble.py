"""An ensemble: several initialisations of one model, computed together."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from symgnn.graphs import Topology
from symgnn.train._replay import record

#: Members that go through a batch together, times its largest number of nodes, edges or angles.
#: That many rows of 64 numbers are 8 MiB; with more, the processor waits for memory.
ROWS_TOGETHER = 2**15
#: Members go together if they are at least so many, on batches of at most so many rows: otherwise
#: the operations of a network alone, which are faster, make up for their fixed costs.
LEAST_TOGETHER, ROWS_OF_ONE = 3, 5_000

#: Signature: (outputs of one member, batch) -> its loss, a scalar.
Loss: TypeAlias = Callable[[Tensor, Data], Tensor]
#: Signature: (batch, scale) -> losses [S]; leaves the gradient of each parameter in `.grad`.
Step: TypeAlias = Callable[[Data, float], Tensor]


class Ensemble(nn.Module):
    """S initialisations of one model, called and trained as one module.

    Member k is the model that `make` builds after `torch.manual_seed(seeds[k])`. It computes and
    trains as it would alone, up to rounding. Several members share one computation
    (`torch.vmap`), with a leading member axis on each parameter: small matrix products become a
    few larger ones, which costs far less than training one member after the other. On large
    graphs only as many members go together as fit the processor's cache; where that is one, each
    is computed as an ordinary module. A single member is one, without that axis.

    Args:
        make: Builds one model.
        seeds: The seed of each member, or their number S, for the seeds 0 to S - 1.

    Example:
        >>> import symgnn, torch_geometric
        >>> solids = torch_geometric.data.Batch.from_data_list(symgnn.data.polytopes(3))
        >>> ensemble = Ensemble(lambda: symgnn.nn.build("dgn", outputs=5), seeds=10)
        >>> ensemble(solids).shape
        torch.Size([10, 5, 5])
    """

    def __init__(self, make: Callable[[], nn.Module], seeds: int | Sequence[int] = 10) -> None:
        super().__init__()
        self.seeds = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
        if not self.seeds:
            raise ValueError(f"seeds: is {seeds!r}; give at least one")
        models = []
        with torch.random.fork_rng(devices=[]):
            for seed in self.seeds:
                torch.manual_seed(seed)
                models.append(make())
        #: The only member, or None where there are several.
        self.single = models[0] if len(models) == 1 else None
        # of several members this one lends its code only, so it is no child of this module
        self.__dict__["model"] = models[0]
        self._names: list[str] = []
        self._buffer_names: list[str] = []
        if self.single is None:
            parameters, buffers = torch.func.stack_module_state(models)
            self._names, self._buffer_names = list(parameters), list(buffers)
            self.stacked = nn.ParameterList(p.detach().clone() for p in parameters.values())
            for number, value in enumerate(buffers.values()):
                self.register_buffer(f"stacked_{number}", value, persistent=False)

    model: nn.Module

    def __len__(self) -> int:
        return len(self.seeds)

    # ---- calling

    def forward(self, data: Data) -> Tensor:
        """The outputs of all members, `[S, ...]`."""
        if self.single is not None:
            return self.single(data).unsqueeze(0)
        return self.each(lambda outputs: outputs, data)

    def each(
        self,
        function: Callable[[Tensor], Tensor],
        data: Data,
        parameters: Sequence[Tensor] | None = None,
        members: slice = slice(None),
    ) -> Tensor:
        """Apply `function` to the outputs of each member, `[S, ...]`.

        Args:
            function: Applied to the outputs of one member, without the member axis.
            data: A graph or batch.
            parameters: Other values for the stacked parameters, `[S, ...]` each.
            members: Which members; all if not given.
        """
        given = prepared(self.model, data)
        if self.model.training != self.training:
            self.model.train(self.training)

        def one(parameters: dict[str, Tensor], buffers: dict[str, Tensor]) -> Tensor:
            return function(torch.func.functional_call(self.model, (parameters, buffers), (given,)))

        values = [p[members] for p in self.stacked] if parameters is None else parameters
        buffers = {name: value[members] for name, value in self._stacked_buffers().items()}
        named, size = dict(zip(self._names, values, strict=True)), self.together(given)
        if size == 1:  # as a network alone, which has faster operations than inside vmap
            each = [
                [{name: value[k] for name, value in part.items()} for part in (named, buffers)]
                for k in range(len(self.seeds[members]))
            ]
            return torch.stack([one(*parts) for parts in each])
        # each member draws its own dropout
        return torch.vmap(one, randomness="different", chunk_size=size)(named, buffers)

    def together(self, data: Data) -> int:
        """The number of members that are computed at once for a batch: a divisor of S."""
        topology, rows = getattr(data, "topology", None), 0
        if isinstance(topology, Topology):  # where no angle is listed, sums over angles are on rays
            rows = topology.num_rays if topology.pairs is None else topology.num_angles
        rows = max(rows, data.num_edges, data.num_nodes or 0, 1)
        if rows > ROWS_OF_ONE:
            return 1
        size = max(
            size
            for size in range(1, len(self) + 1)
            if len(self) % size == 0 and size * rows <= ROWS_TOGETHER
        )
        return size if size >= LEAST_TOGETHER else 1

    @property
    def topology(self) -> Callable[[Data], Topology] | None:
        """The function that computes the topology of a batch, if the model has one."""
        return getattr(self.model, "topology", None)

    # ---- gradients

    def gradients(self, loss: Loss, batch: Data, scale: float = 1.0) -> Tensor:
        """The loss of each member `[S]`; stores the gradients, times `scale`, in `.grad`."""
        if self.single is not None:
            value = loss(self.single(batch), batch)
            parameters = list(self.single.parameters())
            found = torch.autograd.grad(value * scale, parameters, materialize_grads=True)
            _leave(parameters, found)
            return value.detach().unsqueeze(0)
        return self._gradients_in_groups(partial(self._gradients, loss), batch, scale)

    def _gradients_in_groups(self, compute: _Compute, batch: Data, scale: float) -> Tensor:
        batch = prepared(self.model, batch)
        size = self.together(batch)
        values, gradients = [], []
        for start in range(0, len(self), size):
            members = slice(start, start + size)
            leaves = [p.detach()[members] for p in self.stacked]
            losses, of_leaves = compute(batch, members, leaves, scale)
            values.append(losses)
            gradients.append(of_leaves)
        parts = list(zip(*gradients, strict=True))
        _leave(
            list(self.stacked), [torch.cat(each) if len(each) > 1 else each[0] for each in parts]
        )
        return torch.cat(values)

    def _gradients(
        self, loss: Loss, batch: Data, members: slice, leaves: Sequence[Tensor], scale: float
    ) -> tuple[Tensor, Sequence[Tensor]]:
        leaves = [leaf.requires_grad_() for leaf in leaves]
        losses = self.each(lambda outputs: loss(outputs, batch), batch, leaves, members)
        # each loss depends on its own member only, so the sum trains each alone
        total = losses.sum() * scale
        return losses.detach(), torch.autograd.grad(total, leaves, materialize_grads=True)

    def recorded(self, loss: Loss, batch: Data) -> Step | None:
        """:meth:`gradients` of one batch as a recorded list of tensor operations.

        Values that depend on the batch alone are computed once. Returns None if the step cannot be
        recorded: its control flow depends on values, or it may change buffers.
        """
        kept = self.model.state_dict().keys()  # other buffers are constants
        if any(buffer.numel() for name, buffer in self.model.named_buffers() if name in kept):
            return None
        batch = prepared(self.model, batch)
        single, some = self.single, slice(0, self.together(batch))
        leaves = list(self.parameters()) if single else [p.detach()[some] for p in self.stacked]

        def losses(parameters: Sequence[Tensor]) -> Tensor:
            if single is None:
                return self.each(lambda out: loss(out, batch), batch, parameters, some)
            named = dict(zip(dict(single.named_parameters()), parameters, strict=True))
            return loss(torch.func.functional_call(single, named, (batch,)), batch).unsqueeze(0)

        self.train()
        try:
            replay = record(losses, [p.detach() for p in leaves])
        except Exception:  # an error of the model itself comes up again without a record
            return None

        def step(_: Data, scale: float = 1.0) -> Tensor:
            if single is None:
                return self._gradients_in_groups(
                    lambda batch, members, leaves, scale: replay(leaves), batch, scale
                )
            values, gradients = replay([p.detach() for p in single.parameters()])
            _leave(list(single.parameters()), gradients)
            return values

        return step

    @torch.no_grad()
    def clip(self, largest: float) -> None:
        """Scale the gradient of each member down to at most this norm."""
        gradients = [p.grad for p in self.parameters() if p.grad is not None]
        if not gradients:
            return
        if self.single is not None:
            gradients = [g.unsqueeze(0) for g in gradients]
        squares = torch.stack([g.flatten(1).square().sum(1) for g in gradients])
        factor = (largest / squares.sum(0).sqrt().clamp(min=1e-12)).clamp(max=1.0)
        for gradient in gradients:
            gradient *= factor.view(-1, *[1] * (gradient.dim() - 1))

    # ---- weights

    def states(self) -> list[dict[str, Tensor]]:
        """The `state_dict` of each member, copied to the CPU."""
        if self.single is not None:
            states = [self.single.state_dict()]
        else:
            stacked = dict(zip(self._names, self.stacked, strict=True)) | self._stacked_buffers()
            names = list(self.model.state_dict())
            states = [{name: stacked[name][k] for name in names} for k in range(len(self))]
        return [{k: v.detach().cpu().clone() for k, v in state.items()} for state in states]

    @torch.no_grad()
    def load_states(self, states: Sequence[dict[str, Tensor]]) -> None:
        """Load a `state_dict` for each member."""
        if len(states) != len(self):
            raise ValueError(f"states: there are {len(states)} for {len(self)} members")
        if self.single is not None:
            self.single.load_state_dict(states[0])
            return
        stacked = dict(zip(self._names, self.stacked, strict=True)) | self._stacked_buffers()
        for name in self.model.state_dict():
            stacked[name].copy_(torch.stack([state[name] for state in states]))

    def member(self, k: int) -> nn.Module:
        """Member k as an ordinary module: a copy with its weights, in eval mode."""
        model = copy.deepcopy(self.model)
        model.load_state_dict(self.states()[k])
        return model.eval()

    def _stacked_buffers(self) -> dict[str, Tensor]:
        return {n: getattr(self, f"stacked_{k}") for k, n in enumerate(self._buffer_names)}

    def _apply(self, function: Callable[[Tensor], Tensor], recurse: bool = True) -> Ensemble:
        super()._apply(function, recurse)
        if self.single is None:
            self.model._apply(function, recurse)
        return self

    def __repr__(self) -> str:
        return f"Ensemble({len(self)} x {self.model!r})"


#: Signature: (batch, which members, their parameters, scale) -> (their losses, their gradients).
_Compute: TypeAlias = Callable[
    [Data, slice, Sequence[Tensor], float], tuple[Tensor, Sequence[Tensor]]
]


def prepared(model: nn.Module, data: Data) -> Data:
    """The data with its topology, which cannot be made inside `torch.vmap`."""
    topology = getattr(model, "topology", None)
    if topology is None or isinstance(getattr(data, "topology", None), Topology):
        return data
    data = copy.copy(data)
    data.topology = topology(data)
    return data


def _leave(parameters: Sequence[Tensor], gradients: Sequence[Tensor]) -> None:
    """Leave gradients in `.grad`, in memory as the parameters lie: a fused optimiser reads both in
    the order of memory, whatever their strides say.
    """
    for parameter, gradient in zip(parameters, gradients, strict=True):
        same = gradient.stride() == parameter.stride()
        parameter.grad = gradient if same else torch.empty_like(parameter).copy_(gradient)
