"""Which arguments a model is called with, by the names of its parameters."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from symgnn.audit._isolation import is_script
from symgnn.audit._tensor_graph import TensorGraph

if TYPE_CHECKING:
    from symgnn.audit._structures import Graph

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
_GRAPHS = ("Data", "Batch", "HeteroData")
_MAPPINGS = ("dict", "mapping", "mutablemapping")


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """The parameters of a function or of a module's forward; None where they cannot be known.

    Of TorchScript the schema is read, and of what `torch.compile` gave the module inside.
    """
    if isinstance(function, functools.partial):
        return _left_of(function)
    inner: Any = getattr(function, "_orig_mod", function)  # of torch.compile
    if isinstance(inner, nn.DataParallel | nn.parallel.DistributedDataParallel):
        inner = inner.module
    if getattr(inner, "takes_what_the_model_takes", False):  # a wrapper of this package
        return parameters_of(inner.model)
    schema: Any = None
    held: Any = inner
    if isinstance(inner, nn.Module):
        if is_script(inner):
            schema = held._c._get_method("forward").schema.arguments[1:]  # without self
        inner = inner.forward
    elif isinstance(inner, torch.jit.ScriptFunction):
        schema = held.schema.arguments
    if schema is not None:
        return [_of_schema(argument) for argument in schema]
    try:
        return list(inspect.signature(inner).parameters.values())
    except (TypeError, ValueError):
        return None


def _left_of(function: functools.partial[Any]) -> list[inspect.Parameter] | None:
    """The parameters that a partial function still takes."""
    parameters = parameters_of(function.func)
    if parameters is None:
        return None
    left, by_name = [], False
    for parameter in parameters[len(function.args) :]:
        if parameter.name in function.keywords:
            by_name = True  # what comes after it can be passed by name alone
            continue
        variadic = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        kind = parameter.KEYWORD_ONLY if by_name and not variadic else parameter.kind
        left.append(parameter.replace(kind=kind))
    return left


def _of_schema(argument: Any) -> inspect.Parameter:
    default = None if argument.has_default_value() else inspect.Parameter.empty
    name = argument.name if argument.name.isidentifier() else argument.name.replace(".", "_")
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, kind, default=default, annotation=str(argument.type))


def arguments(function: Callable[..., Any], data: Graph) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of the function: the whole graph, or attributes by their names."""
    parameters = parameters_of(function)
    if parameters is None:
        return [_whole(data, None)], {}
    values = {k: v for k, v in data.to_dict().items() if k not in ("ptr", "topology")}
    if isinstance(data, TensorGraph):
        values |= data.as_given()
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    has_whole = False
    bound: set[str] = set()
    for k, parameter in enumerate(parameters):
        if parameter.kind is parameter.VAR_POSITIONAL:
            if k == 0:
                return [_whole(data, None)], {}
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            left_out = {"num_nodes", *bound}
            kwargs.update({key: value for key, value in values.items() if key not in left_out})
            continue
        if k == 0 and _takes_graph(parameter, values):
            args.append(_whole(data, parameter))
            has_whole = True
            continue
        if parameter.default is not parameter.empty and has_whole:
            continue  # it has the whole graph
        found, value = _value(parameter, values, data, lone=len(parameters) == 1)
        if not found:
            continue
        bound |= {parameter.name, ALIASES.get(parameter.name, parameter.name)}
        in_order = len(args) == k and parameter.kind is not parameter.KEYWORD_ONLY
        if parameter.kind is parameter.POSITIONAL_ONLY or in_order:
            args.append(value)
        else:
            kwargs[parameter.name] = value
    return args, kwargs


def _value(
    parameter: inspect.Parameter, values: Mapping[str, Any], data: Graph, lone: bool
) -> tuple[bool, Any]:
    """Whether there is a value for a parameter, and the value."""
    name = ALIASES.get(parameter.name, parameter.name)
    name = parameter.name if parameter.name in values else name
    needed = parameter.default is parameter.empty
    if name in values:
        return True, values[name]
    if name == "batch" and needed:
        return True, torch.zeros(len(data.pos), dtype=torch.long, device=data.pos.device)
    if lone and needed and _is_tensor(parameter):
        return True, data.pos
    if needed:
        raise ValueError(
            f"data: the model takes {parameter.name!r}, but the graph has only "
            f"{', '.join(values)}; set data.{parameter.name}, or pass a function f(pos, ...)"
        )
    return False, None


def _annotation(parameter: inspect.Parameter) -> str:
    kind = parameter.annotation
    if kind is parameter.empty:
        return ""
    return kind if isinstance(kind, str) else getattr(kind, "__name__", str(kind))


def _is_tensor(parameter: inspect.Parameter) -> bool:
    return _annotation(parameter).rpartition(".")[2] == "Tensor"


def _takes_graph(parameter: inspect.Parameter, values: Mapping[str, Any]) -> bool:
    text = _annotation(parameter)
    if text.rpartition(".")[2] in _GRAPHS or _is_mapping(text):
        return True
    if _is_tensor(parameter):
        return False
    if parameter.name in WHOLE:
        return True
    return parameter.name not in values and parameter.name not in ALIASES


def _is_mapping(text: str) -> bool:
    return text.rpartition("typing.")[2].lower().replace("(", "[").partition("[")[0] in _MAPPINGS


def _whole(data: Graph, parameter: inspect.Parameter | None) -> Any:
    """The graph as the model takes it: as it was given, or as a dictionary."""
    if isinstance(data, TensorGraph):
        return data.as_given()
    if parameter is not None and _is_mapping(_annotation(parameter)):
        return dict(data.to_dict())
    return data
