"""Steps of molecular dynamics of 1,000 atoms: our calculator, and schnetpack's own.

Both have the same width, layers, cutoff and skin, in float32, and weights as they are drawn. Their
energies are scaled down, as forces of networks that are not trained would tear the crystal apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from torch.utils.data import dataloader

from symgnn.bench._measure import MissingError, Rounds, medians, paired
from symgnn.bench._speed_claims import SpeedClaim
from symgnn.data import read
from symgnn.nn import Potential, averages, build
from symgnn.train._calculator import calculator_of
from symgnn.train._potential_config import RADIAL, for_potential

WIDTH, LAYERS, CUTOFF, SKIN = 64, 3, 5.0, 0.5
#: Ours beside a network of schnetpack that reads as much: lengths, or directions too. Its messages
#: are filtered, so those of our filtered blocks are most like them.
PAIRS = {
    "dgn-filtered": "SchNet",
    "dgn": "SchNet",
    "combined-filtered": "PaiNN",
    "combined-separable": "PaiNN",
}
FASTER = 2.0
#: The energy that an output of 1 stands for, in eV.
SCALE = 1e-3


def copper(cells: tuple[int, int, int]) -> Any:
    """A crystal with momenta of 300 K, `4 x y z` atoms."""
    try:
        from ase import units
        from ase.build import bulk
    except ImportError:
        raise MissingError("ase is not installed; pip install symgnn[atoms]") from None
    atoms = bulk("Cu", a=3.61, cubic=True) * cells
    atoms.rattle(0.05, seed=0)
    width = np.sqrt(300 * units.kB * atoms.get_masses())[:, None]
    atoms.set_momenta(width * np.random.default_rng(0).standard_normal((len(atoms), 3)))
    return atoms


def ours(block: str) -> Any:
    """The calculator of a block, as drawn for copper by default but for its size."""
    given: dict[str, Any] = {"block": block, "hidden": WIDTH, "mlp_hidden": WIDTH}
    given |= {"layers": LAYERS, "cutoff": CUTOFF}
    _, model = for_potential({}, given, ["energy", "forces"], reads=False)
    graphs = read([copper((2, 2, 2))], columns=[], radius=CUTOFF, elements=[])
    known = averages(graphs, build(block, task="node", **_without(model, "block")).network)
    torch.manual_seed(0)
    drawn = build(block, task="node", averages=known, **_without(model, "block"))
    potential = Potential(drawn, scale=SCALE)
    return calculator_of([potential], cutoff=CUTOFF, elements=[29], skin=SKIN)


def _without(given: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key != name}


def theirs(name: str) -> Any:
    """The calculator of schnetpack of one of its networks, with its neighbour list with a skin."""
    if not hasattr(dataloader, "T_co"):  # schnetpack 2.1 imports it; newer PyTorch has it not
        dataloader.T_co = TypeVar("T_co", covariant=True)  # type: ignore[attr-defined]
    try:
        import schnetpack as spk
        import schnetpack.atomistic
        import schnetpack.model
        import schnetpack.representation
        import schnetpack.transform
        from schnetpack.interfaces.ase_interface import SpkCalculator
    except ImportError:
        raise MissingError("schnetpack is not installed; pip install schnetpack") from None

    class Given(SpkCalculator):
        """Of a network in memory."""

        def _load_model(self, model_file: Any) -> Any:
            return model_file.eval()

    torch.manual_seed(0)
    network = spk.model.NeuralNetworkPotential(
        representation=getattr(spk.representation, name)(
            n_atom_basis=WIDTH,
            n_interactions=LAYERS,
            radial_basis=spk.nn.GaussianRBF(n_rbf=RADIAL, cutoff=CUTOFF),
            cutoff_fn=spk.nn.CosineCutoff(CUTOFF),
        ),
        input_modules=[spk.atomistic.PairwiseDistances()],
        output_modules=[
            spk.atomistic.Atomwise(n_in=WIDTH, output_key="energy"),
            spk.atomistic.Forces(energy_key="energy", force_key="forces"),
        ],
    )
    found = spk.transform.MatScipyNeighborList(cutoff=CUTOFF)
    neighbours = spk.transform.SkinNeighborList(found, cutoff_skin=SKIN)
    return Given(network.requires_grad_(False), neighbours, energy_unit=SCALE)


def steps_of(calculator: Any, atoms: Any) -> Callable[[], None]:
    """One step of constant-energy dynamics."""
    from ase import units
    from ase.md.verlet import VelocityVerlet

    atoms.calc = calculator
    return partial(VelocityVerlet(atoms, 1 * units.fs).run, 1)


def of_dynamics(block: str, cells: tuple[int, int, int], rounds: Rounds) -> Iterator[SpeedClaim]:
    """A step with schnetpack's calculator over one with ours."""
    name = PAIRS[block]
    atoms = copper(cells)
    runs = {
        "ours": steps_of(ours(block), atoms.copy()),
        "schnetpack": steps_of(theirs(name), atoms.copy()),
    }
    times = rounds.alternate(runs)
    yield SpeedClaim(
        f"{block} and {name}, {len(atoms):,} atoms",
        "a step of dynamics with schnetpack's calculator over one with ours",
        paired(times["schnetpack"], times["ours"]),
        FASTER,
        "least",
        seconds=medians(times, "schnetpack", "ours"),
        note=f"{WIDTH} wide, {LAYERS} layers, {CUTOFF:g} A",
    )
