"""Traced, scripted, compiled and exported modules, and modules that a function hides."""

from __future__ import annotations

import functools

import pytest
import torch
from torch import Tensor, nn

from audit.faulty import molecule
from symgnn.audit import audit


class Energy(nn.Module):
    """Reads two tensors by name, in an order of its own; the energy of springs, or not."""

    def __init__(self, broken: bool) -> None:
        super().__init__()
        self.weight = nn.Embedding(10, 1)
        self.head = nn.Linear(1, 1)
        self.broken = broken

    def forward(self, z: Tensor, pos: Tensor) -> Tensor:
        rays = pos.unsqueeze(0) - pos.unsqueeze(1)
        squares = rays.square().sum(-1)
        if self.broken:
            squares = squares + 0.3 * rays[..., 2].square()
        pair = self.weight(z) @ self.weight(z).t()
        return self.head((pair * torch.exp(-squares / 9)).sum(1, keepdim=True)).tanh().sum()


def wrapped(how: str, model: nn.Module):
    data = molecule()
    if how == "script":
        return torch.jit.script(model)
    if how == "trace":
        return torch.jit.trace(model, (data.z, data.pos))
    if how == "frozen":
        return torch.jit.freeze(torch.jit.script(model.eval()))
    if how == "compile":
        return torch.compile(model, backend="eager")
    if how == "export":
        return torch.export.export(model, (data.z, data.pos))
    return torch.export.export(model, (data.z, data.pos)).module()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("how", ["script", "trace", "frozen", "compile", "export", "exported"])
def test_wrapped_modules_are_measured(how: str) -> None:
    torch.manual_seed(0)
    options = {"elements": 2, "search": 8, "groups": ["E(3)", "permutations"], "grow": False}
    sound = audit(wrapped(how, Energy(False)), molecule(), **options)
    assert sound.holds("E(3)"), sound
    assert sound.holds("permutations"), sound
    broken = audit(wrapped(how, Energy(True)), molecule(), **options)
    assert broken.findings["rotation"].verdict == "broken", broken
    assert broken.holds("translations"), broken
    if how == "script":
        assert broken.findings["rotation"].where is None
        assert "TorchScript" in broken.findings["rotation"].not_located
    if how == "compile":
        assert broken.findings["rotation"].where.module == ""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_scripted_part_does_not_hide_the_rest() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.energy = torch.jit.script(Energy(False))
            self.norm = nn.LayerNorm(3)

        def forward(self, z: Tensor, pos: Tensor) -> Tensor:
            return self.energy(z, self.norm(pos))

    torch.manual_seed(0)
    report = audit(Mixed(), molecule(), elements=2, search=0, kinds=["rotation"])
    assert report.findings["rotation"].where.module == "norm"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_scripted_module_comes_back_as_it_was() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(1, 1)
            self.register_buffer("count", torch.zeros(()))

        def forward(self, pos: Tensor) -> Tensor:
            self.count += 1
            return self.linear(torch.cdist(pos, pos).sum().reshape(1))

    model = torch.jit.script(Counting()).train()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    audit(model, molecule(), elements=2, search=0, kinds=["rotation"])
    assert model.training
    assert all(m.training for m in model.modules())
    for key, value in model.state_dict().items():
        assert torch.equal(value, before[key])
        assert value.dtype == before[key].dtype


# ---------------------------------------------------------------- where modules are kept


class Dropped(nn.Module):
    """Invariant, but for a dropout that eval mode turns off."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(1, 8)
        self.drop = nn.Dropout(0.5)

    def forward(self, pos: Tensor) -> Tensor:
        return self.drop(self.mix(torch.pdist(pos)[:, None])).tanh().sum()


class Holder:
    """Keeps a module in a dictionary of a list, behind slots."""

    __slots__ = ("parts",)

    def __init__(self, module: nn.Module) -> None:
        self.parts = [{"net": module}]

    def __call__(self, pos: Tensor) -> Tensor:
        return self.parts[0]["net"](pos)


GLOBAL = {"nested": {"net": Dropped()}}


def by_dictionary(module: nn.Module):
    nets = {"a": {"b": module}}
    return lambda pos: nets["a"]["b"](pos)


def by_inner_function(module: nn.Module):
    def inner(pos):
        return module(pos)

    def outer(pos):
        return inner(pos)

    return outer


def by_default(module: nn.Module):
    return lambda pos, net=(module,): net[0](pos)


def by_method(module: nn.Module):
    return Holder(module).__call__


def by_partial(module: nn.Module):
    return functools.partial(lambda nets, pos: nets["x"](pos), {"x": module})


def by_global(module: nn.Module):
    return lambda pos: next(GLOBAL["nested"]["net"](p) for p in (pos,))


@pytest.mark.parametrize(
    "hide", [by_dictionary, by_inner_function, by_default, Holder, by_method, by_partial, by_global]
)
def test_modules_are_found_wherever_they_are(hide) -> None:
    torch.manual_seed(0)
    module = Dropped().train()
    report = audit(hide(module), molecule(), elements=2, search=0, groups="E(n)")
    assert not report.stochastic, report
    assert report.holds("E(n)"), report
    assert report.parameters == 16
    assert module.training


def test_modules_can_be_named() -> None:
    class Far:
        """Refuses to be looked into."""

        __slots__ = ("get",)

    torch.manual_seed(0)
    module, far = Dropped().train(), Far()
    far.get = iter(lambda: module, None)

    def model(pos):
        return next(far.get)(pos)

    assert "other outputs each time" in audit(model, molecule(), elements=2, search=0).stochastic
    named = audit(model, molecule(), elements=2, search=0, modules=[module], groups="E(n)")
    assert not named.stochastic
    assert named.holds("E(n)"), named
    with pytest.raises(ValueError, match="modules: has a int; pass the torch modules"):
        audit(model, molecule(), modules=[3])
