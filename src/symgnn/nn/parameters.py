"""Modules of inputs with parameters, and the re-initialisation of parameters."""

from __future__ import annotations

from collections.abc import Iterable

from torch import nn

from symgnn.nn.inputs import Input


class InputModules(nn.ModuleDict):
    """A module for each input that has parameters, by a readable name.

    Equal inputs share a module. The first input of a name has that name, the next ones
    `name_2`, `name_3`, ... in the order of the inputs.
    """

    def __init__(self, inputs: Iterable[Input]) -> None:
        super().__init__()
        self.names: dict[Input, str] = {}
        for each in inputs:
            home = each.home
            if home.make is not None and home not in self.names:
                self.names[home] = self._free_name(home.name)
                self[self.names[home]] = home.make()

    def _free_name(self, name: str) -> str:
        """A name that a submodule may have and none has yet."""
        base = name.replace(".", "_") or "input"
        names = [base, *(f"{base}_{number}" for number in range(2, len(self) + 3))]
        return next(free for free in names if free not in self and not hasattr(self, free))

    def by_input(self) -> dict[Input, nn.Module]:
        """The modules by their input."""
        return {each: self[name] for each, name in self.names.items()}


def reset_parts(module: nn.Module) -> None:
    """Re-initialise the parameters of all submodules by their own `reset_parameters`.

    Parameters of the module itself are left to the caller.

    Raises:
        TypeError: A submodule has parameters of its own and no `reset_parameters`.
    """
    for name, part in module.named_children():
        if callable(reset := getattr(part, "reset_parameters", None)):
            reset()
            continue
        own = [key for key, _ in part.named_parameters(recurse=False)]
        if own:
            raise TypeError(
                f"reset_parameters: {type(part).__name__} ({name!r}) has the parameter "
                f"{own[0]!r} and no method reset_parameters; add one that draws it anew"
            )
        reset_parts(part)


def reset_all(module: nn.Module) -> None:
    """As :func:`reset_parts`, for a module that should have no parameters of its own."""
    own = [key for key, _ in module.named_parameters(recurse=False)]
    if own:
        raise TypeError(
            f"reset_parameters: {type(module).__name__} has the parameter {own[0]!r}; override "
            "reset_parameters to draw it anew"
        )
    reset_parts(module)
