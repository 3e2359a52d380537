"""What an exhibit of the zoo is, and the structures that they are audited on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import torch
from torch import nn
from torch_geometric.data import Data

from audit.faulty import molecule

E3 = ("E(3)", "permutations")
SE3 = ("SE(3)", "permutations")


@dataclass
class Given:
    """A model, what it is audited on, and options of the audit."""

    model: Any
    data: Any
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Exhibit:
    """A model that somebody else wrote.

    `holds` are the groups that it has, `breaks` those that it is known not to have. Its authors
    claim `holds`, and `claims` too where that is more than it has: then `note` says why.
    """

    name: str
    package: str  # as pip calls it
    needs: tuple[str, ...]  # what has to be importable
    make: Callable[[], Given]
    holds: tuple[str, ...] = E3
    breaks: tuple[str, ...] = ()
    quick: bool = False  # in the default run
    note: str = ""  # what was found
    claims: tuple[str, ...] = ()

    @property
    def missing(self) -> str:
        """The first package that it needs and that is not installed; "" if there is none."""
        for name in self.needs:
            try:
                found = find_spec(name)
            except ModuleNotFoundError:  # not even the package around it
                found = None
            if found is None:
                return name
        return ""

    @property
    def claimed(self) -> tuple[str, ...]:
        """The groups that its authors say it has."""
        return tuple(dict.fromkeys([*self.holds, *self.claims]))


def atoms(scale: float = 1.3) -> Data:
    data = molecule()
    return Data(pos=scale * data.pos, z=data.z)


def ethanol() -> Any:
    from ase.build import molecule as build

    found = build("CH3CH2OH")
    found.rattle(0.05, seed=1)
    return found


def crystal(name: str = "Cu", **options: Any) -> Any:
    from ase.build import bulk

    found = bulk(name, cubic=True, **options)
    found.rattle(0.1, seed=1)
    return found


def noisy(model: nn.Module, size: float = 0.2) -> nn.Module:
    """With random parameters also where it starts at zero."""
    torch.manual_seed(0)
    for parameter in model.parameters():
        if parameter.is_floating_point():
            parameter.data += size * torch.randn_like(parameter)
    return model
