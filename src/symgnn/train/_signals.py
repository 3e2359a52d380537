"""The size of values and gradients in a network: why it learns, or does not."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch_geometric.data import Data

from symgnn.nn import Model
from symgnn.nn.state import Reference
from symgnn.nn.update import Update

#: Values outside these bounds, at the start, are worth a warning.
SANE = (0.01, 100.0)
#: So many times may the gradient of the first layer differ from that of the last.
SANE_RATIO = 1000.0


class Signal(NamedTuple):
    """One update of a network on one batch.

    Attributes:
        layer: "layer 1", "layer 2", ... or "read-out".
        update: "angle", "edge", "node", "graph", or "coordinates" for the coefficients of a map.
        value: The root mean square of its result.
        gradient: The norm of the gradient of the loss with respect to the result.
        weights: The norm of the gradient with respect to its weights.
    """

    layer: str
    update: str
    value: float
    gradient: float
    weights: float


@dataclass(frozen=True)
class Signals:
    """The signals of all updates, in the order in which they are computed."""

    rows: list[Signal]

    def of_layer(self, layer: str) -> float:
        """The norm of the gradient with respect to the weights of a layer."""
        return math.sqrt(sum(row.weights**2 for row in self.rows if row.layer == layer))

    @property
    def layers(self) -> list[str]:
        """The names of the layers, without the read-out."""
        return list(dict.fromkeys(row.layer for row in self.rows if row.layer != "read-out"))

    @property
    def problem(self) -> str | None:
        """The problem and its remedy in one line; None if all signals have a reasonable size."""
        low, high = SANE
        for row in self.rows:
            if row.update != "coordinates" and not low <= row.value <= high:
                return (
                    f"the {row.update} update of {row.layer} has values of size {row.value:.2g}, "
                    f"outside {low:g} to {high:g}; {_REMEDY}"
                )
        ends = [self.of_layer(layer) for layer in (self.layers[0], self.layers[-1])]
        if not all(map(math.isfinite, ends)) or max(ends) > SANE_RATIO * min(ends):
            return (
                f"gradients have the norm {ends[0]:.2g} in the first layer and {ends[1]:.2g} in "
                f"the last; {_REMEDY}"
            )
        return None

    def __str__(self) -> str:
        console = Console(width=88, record=True, quiet=True)
        table = Table("layer", "update", "value (rms)", "its gradient", "gradient of weights")
        for row in self.rows:
            numbers = (f"{number:.3g}" for number in (row.value, row.gradient, row.weights))
            table.add_row(row.layer, row.update, *numbers)
        with console.capture() as captured:
            console.quiet = False
            console.print(table)
        return captured.get()


_REMEDY = (
    "give the averages of the training graphs (averages=), init='variance', residual=True or "
    "norm=True"
)


def signals(
    model: Model, batch: Data, loss: Callable[[Tensor, Data], Tensor] | None = None
) -> Signals:
    """Measure the size of the values and gradients of every update of a network.

    Networks learn well if values stay near 1 from layer to layer, and gradients of the first and
    the last layer have the same size.

    Args:
        model: A model of :func:`symgnn.nn.build`.
        batch: A graph or batch in the form that the model reads.
        loss: A function of outputs and batch; half the mean square of the outputs if not given.

    Returns:
        The signals; `print(signals(...))` shows a table, `.problem` is one line, or None.

    Example:
        >>> import symgnn
        >>> solids = symgnn.data.polytopes(3)
        >>> known = symgnn.nn.averages(solids)
        >>> model = symgnn.nn.build("dgn", outputs=5, averages=known)
        >>> found = symgnn.train.signals(model, solids[0])
        >>> found.problem is None
        True
    """
    updates = {
        module: place
        for name, module in model.named_modules()
        if isinstance(module, Update) and (place := _place(name)) is not None
    }
    seen: list[tuple[Update, Tensor]] = []

    def keep(module: Any, _: Any, result: Any) -> None:
        if result.topology is not batch.topology:  # an edge update on all pairs, for its map
            return
        rows = result.rows
        if rows.requires_grad:
            rows.retain_grad()
        seen.append((module, rows))

    hooks = [update.register_forward_hook(keep) for update in updates]
    engine, training = model.engine, model.training
    needs = [parameter.requires_grad for parameter in model.parameters()]
    try:
        model.engine = Reference()
        model.eval()
        model.requires_grad_(True)
        batch = copy.copy(batch)
        batch.topology = model.topology(batch)
        with torch.enable_grad():
            out = model(batch)
            value = out.square().mean() / 2 if loss is None else loss(out, batch)
            parameters = list(model.parameters())
            kept = [rows for _, rows in seen if rows.requires_grad]
            grads = torch.autograd.grad(value, [*kept, *parameters], allow_unused=True)
    finally:
        for hook in hooks:
            hook.remove()
        model.engine = engine
        model.train(training)
        for parameter, need in zip(model.parameters(), needs, strict=True):
            parameter.requires_grad_(need)
    of_rows = dict(zip(map(id, kept), grads, strict=False))
    of_weights = dict(zip(map(id, parameters), grads[len(kept) :], strict=True))
    rows = []
    for update, values in seen:
        layer, name = updates[update]
        size = values.detach().square().mean().sqrt() if values.numel() else torch.ones(())
        weights = _norm([of_weights[id(parameter)] for parameter in update.parameters()])
        rows.append(Signal(layer, name, float(size), _norm([of_rows.get(id(values))]), weights))
    return Signals(rows)


def _place(name: str) -> tuple[str, str] | None:
    """The layer and the update that a module of this name is."""
    parts = name.split(".")
    if parts[0] == "readouts":
        return "read-out", parts[-1]
    if parts[0] == "blocks":
        return f"layer {int(parts[1]) + 1}", parts[3] if parts[2] == "updates" else "coordinates"
    return None


def _norm(grads: Sequence[Tensor | None]) -> float:
    return math.sqrt(sum(float(grad.square().sum()) for grad in grads if grad is not None))
