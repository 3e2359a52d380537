"""Several initialisations of one model, trained as one computation."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from symgnn.topology import Topology
from symgnn.train.replay import record

#: From how many steps on the same batch a step is recorded: recording takes a second or two.
WORTH_RECORDING = 300

#: How many models go through a batch at once times its largest number of nodes, edges or angles:
#: so many rows of 64 numbers are 8 MiB. More at once would wait for memory.
TOGETHER = 2**15

#: Signature: (batch, which models, their parameters) -> (their losses, their gradients).
_Compute: TypeAlias = Callable[[Data, slice, Sequence[Tensor]], tuple[Tensor, Sequence[Tensor]]]
#: Signature: (outputs, data=batch) -> the loss of one model, a scalar.
Loss: TypeAlias = Callable[..., Tensor]


class Seeds:
    """A model in several initialisations, with a leading seed axis on everything it gives.

    `make()` builds the model; seed s of any number of seeds is the model that `make` builds after
    `torch.manual_seed(s)`, and trains as it would alone, to rounding. Together they cost far less
    than one after the other: their small matrix products become a few larger ones. On large graphs
    only as many go together as fit the processor's cache (:meth:`together`).

    >>> import symgnn, torch_geometric
    >>> solids = torch_geometric.data.Batch.from_data_list(symgnn.data.polytopes(3))
    >>> seeds = Seeds(lambda: symgnn.nn.build("dgn", outputs=5), seeds=10)
    >>> seeds(solids).shape
    torch.Size([10, 5, 5])
    """

    def __init__(self, make: Callable[[], nn.Module], seeds: int | Sequence[int] = 10) -> None:
        self.seeds = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
        if not self.seeds:
            raise ValueError(f"seeds: is {seeds!r}; give at least one")
        models = []
        with torch.random.fork_rng(devices=[]):
            for seed in self.seeds:
                torch.manual_seed(seed)
                models.append(make())
        self.model = models[0]
        parameters, self.buffers = torch.func.stack_module_state(models)
        self.parameters = {k: p.detach().requires_grad_() for k, p in parameters.items()}

    def __len__(self) -> int:
        return len(self.seeds)

    def _apply(
        self,
        function: Callable[[Tensor], Tensor],
        data: Data,
        parameters: dict[str, Tensor] | None = None,
        members: slice = slice(None),
    ) -> Tensor:
        """`function` of the outputs of each model, or of some `members`, `[S, ...]`."""
        given = _prepared(self.model, data)

        def one(parameters: dict[str, Tensor], buffers: dict[str, Tensor]) -> Tensor:
            out = torch.func.functional_call(self.model, (parameters, buffers), (given,))
            return function(out)

        parameters = self.parameters if parameters is None else parameters
        buffers = {name: buffer[members] for name, buffer in self.buffers.items()}
        # each model draws its own dropout
        apply = torch.vmap(one, randomness="different", chunk_size=self.together(given))
        return apply(parameters, buffers)

    def together(self, data: Data) -> int:
        """How many models go through a batch at once: as many as fit the processor's cache."""
        topology = getattr(data, "topology", None)
        rows = topology.num_angles if isinstance(topology, Topology) else 0
        rows = max(rows, data.num_edges, data.num_nodes or 0, 1)
        fit = max(TOGETHER // rows, 1)
        return max(
            size for size in range(1, len(self) + 1) if len(self) % size == 0 and size <= fit
        )

    def __call__(self, data: Data) -> Tensor:
        """The outputs of all models, `[S, ...]`."""
        return self._apply(lambda out: out, data)

    @torch.no_grad()
    def predict(self, data: Data) -> tuple[Tensor, Tensor]:
        """The mean over the models, and their standard deviation as a measure of uncertainty."""
        was = self.model.training
        self.model.eval()
        out = self(data)
        self.model.train(was)
        spread = out.std(0) if len(self) > 1 else torch.zeros_like(out[0])
        return out.mean(0), spread

    def fit(
        self,
        data: Data | Iterable[Data] | Callable[[int], Iterable[Data]],
        loss: Loss,
        *,
        epochs: int,
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        on_epoch: Callable[[int, Tensor], Any] | None = None,
    ) -> Tensor:
        """Train all models with Adam; give the losses `[epochs, S]`.

        `data` is one batch for every step, a loader, or a function from the epoch to its batches.
        Each model sees the same batches. With one batch for every step, the step is recorded once
        and replayed. `on_epoch(epoch, losses)` is called after each epoch.
        """
        compute: _Compute = partial(self._gradients, loss)
        if isinstance(data, Data):
            epochs_of: Iterable[Iterable[Data]]
            prepared = _prepared(self.model, data)
            epochs_of = itertools.repeat([prepared], epochs)
            if epochs >= WORTH_RECORDING:
                compute = self._recorded(loss, prepared) or compute
        elif callable(data):
            epochs_of = map(data, range(epochs))
        else:
            epochs_of = itertools.repeat(data, epochs)
        optimiser = torch.optim.Adam(
            list(self.parameters.values()), learning_rate, weight_decay=weight_decay, fused=True
        )
        history = []
        self.model.train()
        for epoch, batches in enumerate(epochs_of):
            total, steps = torch.zeros(len(self)), 0
            for batch in batches:
                losses = self._step(compute, _prepared(self.model, batch))
                optimiser.step()
                total, steps = total + losses.cpu(), steps + 1
            history.append(total / max(steps, 1))
            if on_epoch is not None:
                on_epoch(epoch, history[-1])
        self.model.eval()
        return torch.stack(history) if history else torch.empty(0, len(self))

    def _step(self, compute: _Compute, batch: Data) -> Tensor:
        """The losses `[S]`; leaves their gradients on the parameters."""
        size = self.together(batch)
        values, gradients = [], []
        for start in range(0, len(self), size):
            members = slice(start, start + size)
            leaves = [p.detach()[members] for p in self.parameters.values()]
            losses, of_leaves = compute(batch, members, leaves)
            values.append(losses)
            gradients.append(of_leaves)
        for parameter, parts in zip(
            self.parameters.values(), zip(*gradients, strict=True), strict=True
        ):
            # fused Adam reads memory in order, whatever the strides say
            parameter.grad = torch.cat(parts) if len(parts) > 1 else parts[0].contiguous()
        return torch.cat(values)

    def _gradients(
        self, loss: Loss, batch: Data, members: slice, leaves: Sequence[Tensor]
    ) -> tuple[Tensor, Sequence[Tensor]]:
        """The losses of some models, and their gradients."""
        leaves = [leaf.requires_grad_() for leaf in leaves]
        named = dict(zip(self.parameters, leaves, strict=True))
        losses = self._apply(partial(loss, data=batch), batch, named, members)
        # each loss depends on its own model only, so the sum trains each alone
        return losses.detach(), torch.autograd.grad(losses.sum(), leaves, materialize_grads=True)

    def _recorded(self, loss: Loss, batch: Data) -> _Compute | None:
        """As :meth:`_gradients`, for this batch, from a record; None if it cannot be recorded."""
        if any(buffer.numel() for buffer in self.buffers.values()):  # the step may change them
            return None
        some = slice(0, self.together(batch))

        def losses(parameters: Sequence[Tensor]) -> Tensor:
            named = dict(zip(self.parameters, parameters, strict=True))
            return self._apply(partial(loss, data=batch), batch, named, some)

        self.model.train()
        try:
            replay = record(losses, [p.detach()[some] for p in self.parameters.values()])
        except Exception:  # an error of the model itself comes up again without a record
            return None
        return lambda batch, members, leaves: replay(leaves)

    def double(self) -> Seeds:
        """A copy in float64, for evaluation."""
        exact = copy.copy(self)
        exact.parameters = {k: p.detach().double() for k, p in self.parameters.items()}
        exact.buffers = {
            k: b.double() if b.is_floating_point() else b for k, b in self.buffers.items()
        }
        return exact

    def member(self, k: int) -> dict[str, Tensor]:
        """The `state_dict` of the k-th model."""
        state = {**self.parameters, **self.buffers}
        names = self.model.state_dict()
        return {name: state[name][k].detach().clone() for name in names}


def _prepared(model: nn.Module, data: Data) -> Data:
    """The data with its topology, which cannot be made inside vmap."""
    topology = getattr(model, "topology", None)
    if topology is None or getattr(data, "topology", None) is not None:
        return data
    data = copy.copy(data)
    data.topology = topology(data)
    return data
