"""Run a model's modules and random generators, then restore their state."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

#: What a model may keep things in.
Container = dict[Any, Any] | list[Any] | set[Any]


@contextmanager
def isolated(roots: list[nn.Module], dtype: torch.dtype | None) -> Iterator[None]:
    """Inside, the modules are in eval mode and of the type; afterwards they are as they were.

    With None, they keep their type: what calls them makes inputs of that type.

    Parameters and buffers get other memory meanwhile, so that in-place writes of a forward are
    undone too. Tensors of a lower precision than most keep it: they are meant to have it.
    """
    modules = list({id(m): m for root in roots for m in root.modules()}.values())
    parameters = list({id(p): p for root in roots for p in root.parameters()}.values())
    buffers = list({id(b): b for root in roots for b in root.buffers()}.values())
    main = main_type(parameters or buffers)
    kept = [(p, p.data, p.grad, p.requires_grad) for p in parameters]
    stored = [(b, b.data) for b in buffers]
    flags = [(m, m.training) for m in modules if hasattr(m, "training")]  # frozen: none
    state = [(m, dict(m.__dict__)) for m in modules if not is_script(m)]
    inside = [(v, _shallow(v)) for _, own in state for v in own.values() if _shallow(v) is not None]
    default = torch.get_default_dtype()

    def other(tensor: Tensor) -> Tensor:
        own = tensor.dtype if dtype is None or tensor.dtype != main else dtype
        return tensor.detach().to(own, copy=True)

    try:
        torch.set_default_dtype(default if dtype is None else dtype)
        for parameter in parameters:
            parameter.grad = None
            parameter.data = other(parameter)
        for buffer in buffers:
            buffer.data = other(buffer)
        for module, own in state:
            for key, value in own.items():  # constants that were not registered
                if isinstance(value, Tensor) and value.is_floating_point() and value.is_leaf:
                    module.__dict__[key] = other(value).requires_grad_(value.requires_grad)
        for root in roots:
            _set_training(root, False)
        yield
    finally:
        torch.set_default_dtype(default)
        for container, content in inside:
            _restore(container, content)
        for module, own in state:
            module.__dict__.clear()
            module.__dict__.update(own)
        for module, flag in flags:
            if module.training != flag:
                module.training = flag
        for buffer, value in stored:
            buffer.data = value
        for parameter, value, grad, requires_grad in kept:
            parameter.data, parameter.grad = value, None
            parameter.requires_grad_(requires_grad)
            parameter.grad = grad


@contextmanager
def contents_kept(containers: Sequence[Container]) -> Iterator[None]:
    """Afterwards, the containers have what they had before."""
    before = [(container, container.copy()) for container in containers]
    try:
        yield
    finally:
        for container, content in before:
            _restore(container, content)


def _restore(container: Container, content: Any) -> None:
    container.clear()
    (container.extend if isinstance(container, list) else container.update)(content)


def is_script(module: nn.Module) -> bool:
    """Whether it is compiled to TorchScript, with its state outside of Python."""
    return isinstance(module, torch.jit.ScriptModule)


def _set_training(root: nn.Module, flag: bool) -> None:
    try:
        root.train(flag)
    except (NotImplementedError, AttributeError):  # exported or frozen: it has one mode
        return


def main_type(tensors: Iterable[Tensor]) -> torch.dtype | None:
    """The most exact type among them."""
    floating = [tensor.dtype for tensor in tensors if tensor.is_floating_point()]
    return max(floating, key=lambda kind: torch.finfo(kind).bits, default=None)


def _shallow(value: Any) -> Any:
    """A copy of a container that a module may change, else None."""
    return value.copy() if isinstance(value, dict | list | set) else None


def seed_all(seed: int) -> None:
    """The same random numbers from here on, for torch, numpy and random."""
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
