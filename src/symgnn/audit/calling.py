"""Calling anything that maps a graph to numbers, and leaving it as it was."""

from __future__ import annotations

import functools
import inspect
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

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
        self.modules = _modules_in(function)

    @property
    def name(self) -> str:
        """What the report calls it."""
        return getattr(self.function, "__name__", type(self.function).__name__)

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

    def __init__(self, calculator: Any, atoms: Any) -> None:
        super().__init__(calculator.get_property)
        self.calculator, self.atoms = calculator, atoms
        self.modules = _modules_in(calculator)
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
            atoms = self.atoms.copy()[graph.atom.numpy()]
            atoms.set_cell(graph.cell[0].numpy())
            atoms.set_positions(graph.pos.numpy())
            for name in self.properties:
                value = torch.as_tensor(np.array(self.calculator.get_property(name, atoms)))
                found[name].append(value if name == "forces" else value.reshape(1))
        return {name: torch.cat(values) for name, values in found.items()}


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


def tensors_in(
    out: Any, data: Data | None = None, name: str = ""
) -> Iterator[tuple[str, Tensor]]:
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


def _modules_in(function: Any) -> list[nn.Module]:
    """The modules that a function would call: itself, or what it holds or refers to."""
    if isinstance(function, nn.Module):
        return [function]
    if isinstance(function, functools.partial):
        held = [function.func, *function.args, *function.keywords.values()]
        return [m for value in held for m in _modules_in(value)]
    held = list(vars(function).values()) if hasattr(function, "__dict__") else []
    if inspect.ismethod(function):
        held += [function.__self__, *getattr(function.__self__, "__dict__", {}).values()]
    if inspect.isfunction(function):
        variables = inspect.getclosurevars(function)
        held += [*variables.nonlocals.values(), *variables.globals.values()]
    held += [v for value in held if isinstance(value, list | tuple) for v in value]
    return list({id(value): value for value in held if isinstance(value, nn.Module)}.values())


@contextmanager
def borrowed(roots: list[nn.Module], dtype: torch.dtype) -> Iterator[None]:
    """Inside, the modules are in eval mode and of the type; afterwards they are as they were.

    Parameters and buffers get other memory meanwhile, so even what a forward writes into them in
    place is undone. Tensors of a lower precision than most are left so: they are meant to be.
    """
    modules = list({id(m): m for root in roots for m in root.modules()}.values())
    parameters = list({id(p): p for root in roots for p in root.parameters()}.values())
    buffers = [b for m in modules for b in m._buffers.values() if b is not None]
    floating = [t.dtype for t in (parameters or buffers) if t.is_floating_point()]
    main = max(floating, key=lambda kind: torch.finfo(kind).bits, default=dtype)
    kept = [(p, p.data, p.grad, p.requires_grad) for p in parameters]
    state = [(m, dict(m.__dict__)) for m in modules]
    inside = [(v, _shallow(v)) for _, own in state for v in own.values() if _shallow(v) is not None]
    default = torch.get_default_dtype()

    def other(tensor: Tensor) -> Tensor:
        return tensor.detach().to(dtype if tensor.dtype == main else tensor.dtype, copy=True)

    try:
        torch.set_default_dtype(dtype)
        for parameter in parameters:
            parameter.grad = None
            parameter.data = other(parameter)
        for module in modules:
            for key, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[key] = other(buffer)
        for root in roots:
            root.eval()
        yield
    finally:
        torch.set_default_dtype(default)
        for container, content in inside:
            container.clear()
            (container.extend if isinstance(container, list) else container.update)(content)
        for module, own in state:
            module.__dict__.clear()
            module.__dict__.update(own)
        for parameter, value, grad, requires_grad in kept:
            parameter.data, parameter.grad = value, None
            parameter.requires_grad_(requires_grad)
            parameter.grad = grad


def _shallow(value: Any) -> Any:
    """A copy of a container that a module may change, else None."""
    return value.copy() if isinstance(value, dict | list | set) else None


def seed_all(seed: int) -> None:
    """The same random numbers from here on, whoever draws them."""
    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)


@contextmanager
def random_state_kept() -> Iterator[None]:
    """Afterwards, random numbers go on where they were before."""
    arrays, own = np.random.get_state(), random.getstate()  # noqa: NPY002
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        try:
            yield
        finally:
            np.random.set_state(arrays)  # noqa: NPY002
            random.setstate(own)
