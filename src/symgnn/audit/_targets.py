"""Calling anything that maps a graph to numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from symgnn.audit._arguments import arguments
from symgnn.audit._isolation import isolated, main_type
from symgnn.audit._module_search import modules_in
from symgnn.audit._output_tensors import output_tensors
from symgnn.audit._structures import is_periodic

if TYPE_CHECKING:
    from symgnn.audit._structures import Graph

#: Units of what ASE's calculators give.
UNITS = {
    "energy": "eV",
    "forces": "eV/Å",
    "stress": "eV/Å³",
    "dipole": "e Å",
    "charges": "e",
    "magmom": "μB",
    "magmoms": "μB",
}


class Target:
    """A module, a function or a calculator, as a map from a graph to named tensors."""

    units: dict[str, str]

    def __init__(
        self, function: Callable[..., Any], modules: Iterable[nn.Module] | None = None
    ) -> None:
        if hasattr(function, "graph_signature") and hasattr(function, "module"):
            function = function.module()  # an exported program
        if not callable(function):
            raise ValueError(
                f"model: {type(function).__name__} cannot be called; pass a module, a function "
                "f(pos, ...) or an ASE calculator"
            )
        self.function = function
        found = modules_in(function)
        for module in modules or ():
            if not isinstance(module, nn.Module):
                raise ValueError(
                    f"modules: has a {type(module).__name__}; pass the torch modules that the "
                    "function calls"
                )
            if not any(module is m for root in found for m in root.modules()):
                found.append(module)
        self.modules = found
        self.units = {}

    @property
    def name(self) -> str:
        """The name of the target in the report."""
        one = self.modules[0] if len(self.modules) == 1 else None
        name = getattr(self.function, "__name__", "<lambda>")
        if name != "<lambda>" or one is None:
            return name
        one = getattr(one, "_orig_mod", one)
        name = getattr(one, "original_name", type(one).__name__)  # that of TorchScript
        said = repr(one).partition("(")[0]  # a module's repr starts with what it is
        return said if said.isprintable() and 0 < len(said) < 40 and said != name else name

    def native(self, given: torch.dtype) -> torch.dtype:
        """The type that it is in: that of its parameters, or of the coordinates as given."""
        return main_type(p for module in self.modules for p in module.parameters()) or given

    @property
    def precisions(self) -> tuple[torch.dtype, ...]:
        """The types to measure in, the most exact one first."""
        return (torch.float64, torch.float32)

    def coarsest(self, dtype: torch.dtype) -> float:
        """The rounding of the types that it computes in, when it is measured in `dtype`."""
        return torch.finfo(dtype).eps

    def isolated(self, dtype: torch.dtype) -> AbstractContextManager[None]:
        """Inside, the modules are in eval mode and of the type; afterwards they are as before."""
        return isolated(self.modules, dtype)

    def __call__(self, data: Graph, dtype: torch.dtype) -> dict[str, Tensor]:
        """The outputs for a graph, detached, in float64 on the CPU."""
        parameters = (p for module in self.modules for p in module.parameters())
        device = next((p.device for p in parameters), data.pos.device)
        given = cast(data, dtype).to(device)
        with torch.enable_grad():
            out = output_tensors(self.call(given), given)
        return {k: _plain(v) for k, v in out.items()}

    def call(self, data: Graph) -> Any:
        """The function's own answer."""
        args, kwargs = arguments(self.function, data)
        return self.function(*args, **kwargs)


class CalculatorTarget(Target):
    """An ASE calculator: an energy, and forces, stress and more where it has them."""

    def __init__(
        self, calculator: Any, atoms: Any = None, modules: Iterable[nn.Module] | None = None
    ) -> None:
        super().__init__(calculator.get_property, modules)
        self.calculator, self.atoms = calculator, atoms
        known = getattr(calculator, "implemented_properties", ["energy", "forces"])
        self.properties = [name for name in UNITS if name in known]
        self.units = dict(UNITS)

    @property
    def name(self) -> str:
        """The calculator's class."""
        return type(self.calculator).__name__

    @property
    def precisions(self) -> tuple[torch.dtype, ...]:
        """ASE has float64 alone."""
        return (torch.float64,)

    def native(self, given: torch.dtype) -> torch.dtype:
        """The wrapped model may compute in float32, although ASE uses float64."""
        return torch.float32

    def coarsest(self, dtype: torch.dtype) -> float:
        """The modules keep their type; that of their parameters, where they have any."""
        own = main_type(t for module in self.modules for t in module.parameters())
        own = own or main_type(t for module in self.modules for t in module.buffers())
        return max(torch.finfo(kind).eps for kind in (dtype, own) if kind is not None)

    def isolated(self, dtype: torch.dtype) -> AbstractContextManager[None]:
        """The modules keep their type: the calculator makes inputs of that type."""
        return isolated(self.modules, None)

    def call(self, data: Graph) -> Any:
        """The properties of the atoms of each graph."""
        graphs = data.to_data_list() if hasattr(data, "to_data_list") else [data]
        found: dict[str, list[Tensor]] = {}
        for graph in graphs:
            atoms = atoms_of_graph(graph, self.atoms)
            if hasattr(self.calculator, "reset"):
                self.calculator.reset()  # else it may answer for other atoms that are near
            # the stress first: with it, calculators have all else, and need not compute it again
            for name in sorted(self.properties, key=lambda name: name != "stress"):
                if name == "stress" and not is_periodic(graph):
                    continue
                value = self._property(name, atoms)
                if value is not None:
                    found.setdefault(name, []).append(value)
        return {name: torch.cat(found[name]) for name in UNITS if name in found}

    def _property(self, name: str, atoms: Any) -> Tensor | None:
        try:
            value = self.calculator.get_property(name, atoms)
        except NotImplementedError:  # and ASE's PropertyNotImplementedError
            value = None
        if value is None:
            self.properties.remove(name)
            return None
        array = torch.as_tensor(np.array(value, dtype=np.float64))
        if name in ("energy", "magmom"):
            return array.reshape(1)
        return array.reshape(1, -1) if name in ("stress", "dipole") else array


def target_of(model: Any, atoms: Any = None, modules: Iterable[nn.Module] | None = None) -> Target:
    """How to call a model, a function or a calculator, the latter with atoms like these."""
    if isinstance(model, Target):
        return model
    if hasattr(model, "get_property"):
        return CalculatorTarget(model, atoms, modules)
    return Target(model, modules)


def atoms_of_graph(graph: Graph, like: Any = None) -> Any:
    """ASE's atoms with the graph's `pos`, `z` and `cell`, and all else as `like` has it."""
    if like is None or len(like) != graph.num_nodes:
        from ase import Atoms

        pbc = graph.pbc.reshape(-1, 3)[0].numpy() if "pbc" in graph else False
        like = Atoms(graph.z.numpy(), pbc=pbc)
    atoms = like.copy()
    atoms.set_atomic_numbers(graph.z.numpy())
    atoms.set_positions(graph.pos.detach().double().numpy())
    if "cell" in graph:
        atoms.set_cell(graph.cell.reshape(-1, 3, 3)[0].double().numpy())
    return atoms


def cast(data: Graph, dtype: torch.dtype) -> Graph:
    """A copy of the graph, whose floating-point tensors are of the type; none is shared."""
    out = data.clone()
    for key, value in data.to_dict().items():
        if isinstance(value, Tensor) and value.is_floating_point():
            out[key] = value.detach().clone().to(dtype)
    return out


def _plain(value: Tensor) -> Tensor:
    """Detached, in float64 on the CPU; complex numbers as two real ones each."""
    value = value.detach()
    value = torch.view_as_real(value).flatten(-2) if value.is_complex() and value.dim() else value
    value = torch.view_as_real(value) if value.is_complex() else value
    return value.to("cpu", torch.float64).clone()
