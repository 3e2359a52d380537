"""Using a model's modules and the random numbers, and giving them back as they were."""

from __future__ import annotations

import functools
import inspect
import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


def modules_in(function: Any) -> list[nn.Module]:
    """The modules that a function would call: itself, or what it holds or refers to."""
    if isinstance(function, nn.Module):
        return [function]
    if isinstance(function, functools.partial):
        held = [function.func, *function.args, *function.keywords.values()]
        return [m for value in held for m in modules_in(value)]
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
    main = main_type(parameters or buffers)
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


def main_type(tensors: Iterable[Tensor]) -> torch.dtype | None:
    """The most exact type among them."""
    floating = [tensor.dtype for tensor in tensors if tensor.is_floating_point()]
    return max(floating, key=lambda kind: torch.finfo(kind).bits, default=None)


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
