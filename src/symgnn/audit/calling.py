"""Calling anything that maps a graph to numbers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from symgnn.audit.borrowing import main_type, modules_in

#: What a parameter is called that takes the whole graph, if it is the first one.
WHOLE = ("data", "batch", "graph", "graphs", "g", "input", "inputs", "sample")
#: Other names of what the graph has.
ALIASES = {
    "positions": "pos",
    "coordinates": "pos",
    "coords": "pos",
    "coors": "pos",
    "xyz": "pos",
    "atomic_numbers": "z",
    "numbers": "z",
    "species": "z",
    "feats": "x",
    "h": "x",
    "edges": "edge_index",
    "edge_features": "edge_attr",
}


class Target:
    """A module, a function or a calculator, as a map from a graph to named tensors."""

    def __init__(self, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise ValueError(
                f"model: {type(function).__name__} cannot be called; pass a module, a function "
                "f(pos, ...) or an ASE calculator"
            )
        self.function = function
        self.modules = modules_in(function)

    @property
    def name(self) -> str:
        """What the report calls it."""
        one = self.modules[0] if len(self.modules) == 1 else None
        name = getattr(self.function, "__name__", "<lambda>")
        if name != "<lambda>" or one is None:
            return name
        said = repr(one).partition("(")[0]  # a module's repr starts with what it is
        return said if said.isprintable() and len(said) < 40 else type(one).__name__

    def native(self, data: Data) -> torch.dtype:
        """The type that it is in."""
        return (
            main_type(p for module in self.modules for p in module.parameters()) or data.pos.dtype
        )

    @property
    def precisions(self) -> tuple[torch.dtype, ...]:
        """The types to measure in, the most exact one first."""
        return (torch.float64, torch.float32)

    def __call__(self, data: Data, dtype: torch.dtype) -> dict[str, Tensor]:
        """The outputs for a graph, detached, in float64 on the CPU."""
        parameters = (p for module in self.modules for p in module.parameters())
        device = next((p.device for p in parameters), data.pos.device)
        given = cast(data, dtype).to(device)
        with torch.enable_grad():
            out = named(self.call(given), given)
        return {k: v.detach().to("cpu", torch.float64) for k, v in out.items()}

    def call(self, data: Data) -> Any:
        """The function's own answer."""
        function = self.function
        signature = function.forward if isinstance(function, nn.Module) else function
        args, kwargs = arguments(signature, data)
        return function(*args, **kwargs)


class CalculatorTarget(Target):
    """An ASE calculator: an energy, and forces where it has them."""

    def __init__(self, calculator: Any, atoms: Any = None) -> None:
        super().__init__(calculator.get_property)
        self.calculator, self.atoms = calculator, atoms
        self.modules = modules_in(calculator)
        known = getattr(calculator, "implemented_properties", ["energy", "forces"])
        self.properties = [name for name in ("energy", "forces") if name in known]

    @property
    def name(self) -> str:
        """The calculator's class."""
        return type(self.calculator).__name__

    @property
    def precisions(self) -> tuple[torch.dtype, ...]:
        """ASE has float64 alone."""
        return (torch.float64,)

    def call(self, data: Data) -> Any:
        """Energy and forces of the atoms of each graph."""
        graphs = data.to_data_list() if isinstance(data, Batch) else [data]
        found: dict[str, list[Tensor]] = {name: [] for name in self.properties}
        for graph in graphs:
            atoms = atoms_of_graph(graph, self.atoms)
            if hasattr(self.calculator, "reset"):
                self.calculator.reset()  # else it may answer for other atoms that are near
            for name in self.properties:
                value = torch.as_tensor(np.array(self.calculator.get_property(name, atoms)))
                found[name].append(value if name == "forces" else value.reshape(1))
        return {name: torch.cat(values) for name, values in found.items()}


def target_of(model: Any, atoms: Any = None) -> Target:
    """How to call a model, a function or a calculator, the latter with atoms like these."""
    if isinstance(model, Target):
        return model
    return CalculatorTarget(model, atoms) if hasattr(model, "get_property") else Target(model)


def atoms_of_graph(graph: Data, like: Any = None) -> Any:
    """ASE's atoms with the graph's `pos`, `z` and `cell`, and all else as `like` has it."""
    if like is None:
        from ase import Atoms

        like = Atoms(graph.z.numpy(), pbc=graph.pbc[0].numpy() if "pbc" in graph else False)
    atoms = like.copy()
    atoms.set_atomic_numbers(graph.z.numpy())
    atoms.set_positions(graph.pos.double().numpy())
    if "cell" in graph:
        atoms.set_cell(graph.cell[0].double().numpy())
    return atoms


def cast(data: Data, dtype: torch.dtype) -> Data:
    """A copy of the graph, whose floating-point tensors are of the type; none is shared."""
    out = data.clone()
    for store in out.stores:
        for key, value in store.items():
            if isinstance(value, Tensor) and value.is_floating_point():
                store[key] = value.detach().to(dtype)
    return out


def arguments(function: Callable[..., Any], data: Data) -> tuple[list[Any], dict[str, Any]]:
    """What to call the function with: the whole graph, or what its parameters are called."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return [data], {}
    values = {k: v for k, v in data.to_dict().items() if k not in ("ptr", "topology")}
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for k, parameter in enumerate(parameters):
        if parameter.kind is parameter.VAR_POSITIONAL:
            if k == 0:
                return [data], {}
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            rest = {key: value for key, value in values.items() if key not in kwargs}
            kwargs.update({key: value for key, value in rest.items() if key != "num_nodes"})
            continue
        if k == 0 and _takes_graph(parameter, values):
            args.append(data)
            continue
        if parameter.default is not parameter.empty and any(value is data for value in args):
            continue  # it has the whole graph
        name = ALIASES.get(parameter.name, parameter.name)
        name = parameter.name if parameter.name in values else name
        if name in values:
            value = values[name]
        elif name == "batch" and parameter.default is parameter.empty:
            value = torch.zeros(len(data.pos), dtype=torch.long, device=data.pos.device)
        elif parameter.default is parameter.empty:
            raise ValueError(
                f"data: the model takes {parameter.name!r}, but the graph has only "
                f"{', '.join(values)}; set data.{parameter.name}, or pass a function f(pos, ...)"
            )
        else:
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            args.append(value)
        else:
            kwargs[parameter.name] = value
    return args, kwargs


def _takes_graph(parameter: inspect.Parameter, values: Mapping[str, Any]) -> bool:
    kind = parameter.annotation
    text = kind if isinstance(kind, str) else getattr(kind, "__name__", "")
    if text in ("Data", "Batch", "HeteroData") or parameter.name in WHOLE:
        return True
    return parameter.name not in values and parameter.name not in ALIASES


def named(out: Any, data: Data | None = None) -> dict[str, Tensor]:
    """The tensors in what a model gave, by name: numbers if there are any, else integers."""
    found = dict(tensors_in(out, data))
    if not found:
        raise ValueError(
            f"model: gave {type(out).__name__}; let it give a tensor, or tensors in a tuple, "
            "dictionary, named tuple or Data"
        )
    return {k: v for k, v in found.items() if v.is_floating_point()} or found


def tensors_in(out: Any, data: Data | None = None, name: str = "") -> Iterator[tuple[str, Tensor]]:
    """The tensors inside containers, by name; of a graph, those that `data` does not have too."""
    if isinstance(out, Data):
        given = {} if data is None else data.to_dict()
        values = {k: v for k, v in out.to_dict().items() if isinstance(v, Tensor)}
        out = {k: v for k, v in values.items() if not _same(v, given.get(k))} or values
    if isinstance(out, Tensor):
        yield name or "output", out
    elif isinstance(out, bool | int | float | np.ndarray | np.generic):
        yield name or "output", torch.as_tensor(np.asarray(out))
    else:
        for key, value in _parts(out):
            yield from tensors_in(value, data, f"{name}.{key}" if name else str(key))


def _same(value: Tensor, given: Any) -> bool:
    return isinstance(given, Tensor) and value.shape == given.shape and torch.equal(value, given)


def _parts(out: Any) -> Iterator[tuple[str, Any]]:
    """What is inside a container."""
    if isinstance(out, Mapping):
        yield from ((str(key), value) for key, value in out.items())
    elif isinstance(out, tuple) and hasattr(out, "_fields"):
        yield from zip(out._fields, out, strict=True)
    elif isinstance(out, tuple | list):
        yield from ((str(k), value) for k, value in enumerate(out))
    elif is_dataclass(out) and not isinstance(out, type):
        yield from ((field.name, getattr(out, field.name)) for field in fields(out))
