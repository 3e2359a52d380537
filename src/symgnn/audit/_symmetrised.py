"""Any model, averaged over a group, so that it has the symmetry exactly."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from symgnn.audit._arguments import ALIASES, parameters_of
from symgnn.audit._choosing import chosen_names
from symgnn.audit._frames import main_axes, point_frames, quadrature
from symgnn.audit._group_names import GROUPS, kinds_of
from symgnn.audit._output_tensors import output_tensors
from symgnn.audit._outputs import Output
from symgnn.audit._representations import canonical, matrices, size_of
from symgnn.audit._structures import cell_keys, structure_of
from symgnn.audit._tensor_graph import TensorGraph

if TYPE_CHECKING:
    from symgnn.audit._structures import Graph

_SPACE = ("translation", "rotation", "reflection")
_METHODS = ("frame", "quadrature")


class Symmetrised(nn.Module):
    """A model averaged over a group; see :func:`symmetrised`.

    Attributes:
        model: The wrapped model.
        group: The name of the group.
        calls: The number of calls of the wrapped model in the last forward.
    """

    takes_what_the_model_takes = True

    def __init__(
        self,
        model: Callable[..., Any],
        group: str,
        outputs: Mapping[str, str] | str | None,
        vectors: tuple[str, ...],
        method: str,
        degree: int,
    ) -> None:
        super().__init__()
        if method not in _METHODS:
            raise ValueError(f"method: is {method!r}; choose from {', '.join(_METHODS)}")
        if degree < 1:
            raise ValueError(f"degree: is {degree}; give at least 1")
        name, kinds = kinds_of(group)
        if not set(kinds) <= set(_SPACE):
            known = [g for g, own in GROUPS.items() if set(own) <= set(_SPACE)]
            raise ValueError(
                f"group: {name} cannot be averaged over; choose from {', '.join(known)}"
            )
        self.model = model
        self.group, self.kinds = group, tuple(kinds)
        self.outputs, self.vectors = outputs, vectors
        self.method, self.degree = method, degree
        self.calls = 0

    def extra_repr(self) -> str:
        """The group and the method."""
        return f"group={self.group!r}, method={self.method!r}"

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The average, for the arguments that the model takes."""
        if len(args) == 1 and not kwargs and hasattr(args[0], "to_data_list"):
            return self._of_batch(args[0])
        graph, call = self._bound(args, kwargs)
        return self._average(graph, call)

    # ---- the arguments

    def _bound(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Graph, Callable[[Graph], Any]]:
        """The graph in the arguments, and how to call the model with another one."""
        if len(args) == 1 and not kwargs:
            given = args[0]
            if hasattr(given, "stores"):
                return given, self.model
            if isinstance(given, Mapping):
                return structure_of(given), lambda graph: self.model(graph.as_given())
        names = [p.name for p in parameters_of(self.model) or ()]
        values = {**dict(zip(names, args, strict=False)), **kwargs}
        key = next((k for k in values if ALIASES.get(k, k) == "pos"), None)
        if key is None:
            raise ValueError(
                f"model: takes {', '.join(names)}, none of which is called pos; pass a function "
                "f(pos, ...)"
            )
        batch = values.get("batch")
        if isinstance(batch, Tensor) and batch.numel() and int(batch.max()) > 0:
            raise ValueError("batch: has several graphs; pass a PyG Batch, or one graph at a time")
        graph = TensorGraph({"pos" if k == key else k: v for k, v in values.items()}, key)

        def call(other: Graph) -> Any:
            own = other.as_given()
            return self.model(
                *(own[name] for name in names[: len(args)]), **{k: own[k] for k in kwargs}
            )

        return graph, call

    def _of_batch(self, batch: Any) -> Any:
        """Each graph of a PyG batch by itself, as a batch of one, joined again."""
        from torch_geometric.data import Batch

        found, calls = [], 0
        for graph in batch.to_data_list():
            found.append(self._average(Batch.from_data_list([graph]), self.model))
            calls += self.calls
        self.calls = calls
        if isinstance(found[0], Tensor):
            return torch.cat([one if one.dim() else one.reshape(1) for one in found])
        return {key: torch.cat([one[key] for one in found]) for key in found[0]}

    # ---- the average

    def _average(self, graph: Graph, call: Callable[[Graph], Any]) -> Any:
        if missing := [key for key in self.vectors if key not in graph]:
            known = ", ".join(graph.to_dict())
            raise ValueError(f"vectors: there is no {missing[0]!r}; choose from {known}")
        pos = graph.pos
        moves = "translation" in self.kinds
        centre = pos.mean(0) if moves else torch.zeros_like(pos[0])
        frames, weights = self._frames(pos - centre)
        self.calls = len(frames)
        total: dict[str, Tensor] = {}
        single = False
        for frame, weight in zip(frames, weights, strict=True):
            moved = copy.copy(graph)
            moved.pos = (pos - centre) @ frame.T
            for key in {*self.vectors, *cell_keys(graph)}:
                moved[key] = graph[key] @ frame.T.to(graph[key])
            out = call(moved)
            single = isinstance(out, Tensor)
            found = output_tensors(out, moved)
            if not isinstance(self.outputs, str):
                chosen_names(list(found), self.outputs)  # refuses unknown ones
            for name, value in found.items():
                back = weight.to(value) * self._back(name, value, frame, centre)
                total[name] = total[name] + back if name in total else back
        return next(iter(total.values())) if single else total

    def _frames(self, points: Tensor) -> tuple[Tensor, Tensor]:
        n = points.size(1)
        if ("rotation" not in self.kinds and "reflection" not in self.kinds) or n == 0:
            return torch.eye(n).to(points)[None], torch.ones(1).to(points)
        mirrors = "reflection" in self.kinds
        if self.method == "quadrature":
            frames, weights = quadrature(n, self.degree, mirrors)
            return frames.to(points), weights.to(points)
        found = main_axes(points, mirrors) if n <= 4 else None
        found = point_frames(points, mirrors) if found is None else found
        return found, torch.full((len(found),), 1 / len(found)).to(points)

    def _back(self, name: str, value: Tensor, frame: Tensor, centre: Tensor) -> Tensor:
        """An output for the turned graph, as it is for the graph itself."""
        n = len(frame)
        type_ = self._type(name, value, n)
        if type_ == "invariant":
            return value
        if type_ == "coordinates":
            return value @ frame + centre
        plain = Output(name, type_, "graph", _axes(type_, value, n), rows=False)
        parts = plain.parts(value, n)
        turn = matrices(type_, frame.T.double()[None]).to(value)
        return plain._joined(torch.einsum("rij,rcj->rci", turn, parts), value)

    def _type(self, name: str, value: Tensor, n: int) -> str:
        told = self.outputs if isinstance(self.outputs, str) else (self.outputs or {}).get(name)
        if told is not None:
            return canonical(told, name, "outputs", n)
        if value.dim() and n > 1 and n in value.shape[-2:]:
            raise ValueError(
                f"outputs: {name!r} has shape {list(value.shape)}, which may be vectors; pass "
                f"outputs={{{name!r}: 'vector'}} or 'invariant'"
            )
        return "invariant"


def _axes(type_: str, value: Tensor, n: int) -> tuple[int, ...]:
    size, last = size_of(type_, n), value.dim() - 1
    if type_ == "pseudoscalar" or size == 1:
        return ()
    if value.size(-1) == size or value.size(-1) % size == 0:
        return (last,)
    return (last - 1, last)


def symmetrised(
    model: Callable[..., Any],
    group: str = "E(n)",
    *,
    outputs: Mapping[str, str] | str | None = None,
    vectors: tuple[str, ...] | str = (),
    method: str = "frame",
    degree: int = 6,
) -> Symmetrised:
    """Wrap a model in an average over a group; the average has the symmetry of the group.

    With "frame", the model is called on the graph in each of the frames that its points define:
    2^n in n dimensions with reflections and half of them without (8 and 4 in three dimensions). If
    the principal axes are not unique, as for methane, frames through the points are used. The
    symmetry is exact to rounding for every model; the output is discontinuous where the frames
    are. With "quadrature" the model is called on (degree + 1)^2 (degree / 2 + 1) rotations in three
    dimensions, twice as many with reflections. The output is smooth; the symmetry is exact for
    models that are polynomials of at most this degree in the rotation.

    Args:
        model: A module or function; see :func:`symgnn.audit.audit`.
        group: "SO(n)", "O(n)", "SE(n)" or "E(n)", perhaps with the number.
        outputs: The types of outputs that are not invariant, such as `{"forces": "vector"}`.
        vectors: Inputs `[..., n]` that rotate with the graph. The vectors of a `cell` are rotated
            without being named.
        method: "frame" or "quadrature".
        degree: The degree of the quadrature.

    Returns:
        A module with the arguments of the model; `calls` is the number of model calls of the last
        forward. If the model has several outputs, it returns a dictionary.

    Example:
        >>> import torch
        >>> model = symmetrised(lambda pos: (pos**3).sum(), "O(3)")
        >>> pos = torch.randn(5, 3, dtype=torch.float64)
        >>> bool(torch.isclose(model(pos), model(pos.flip(1))))
        True
        >>> model.calls
        8
    """
    vectors = (vectors,) if isinstance(vectors, str) else tuple(vectors)
    return Symmetrised(model, group, outputs, vectors, method, degree)
