"""Angles that read the lengths of their rays, and fade out with them."""

from __future__ import annotations

import copy
import itertools

import pytest
import torch

from nn.potential_cases import CUTOFF, STRUCTURES, graph, potential
from symgnn.nn import Potential, build
from symgnn.nn._engine.engine import engine_of
from symgnn.nn.envelopes import fade

BLOCKS = ["combined", "combined-separable"]


def finite_differences(model: Potential, data, step: float = 1e-4) -> torch.Tensor:
    """Minus the derivative of the energy, by central differences of fourth order."""
    forces = torch.zeros_like(data.pos)
    for i, k in itertools.product(range(len(data.pos)), range(3)):
        for factor, times in ((8.0, 1.0), (-1.0, 2.0)):
            for sign in (1.0, -1.0):
                moved = copy.copy(data)
                moved.pos = data.pos.clone()
                moved.pos[i, k] += sign * times * step
                energy = float(model(moved, forces=False).energy.sum().detach())
                forces[i, k] -= sign * factor * energy / (12 * step)
    return forces


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("name", ["water", "small cell", "one atom"])
def test_forces_are_derivatives(block: str, name: str) -> None:
    model, data = potential(block, ray_lengths=True), graph(STRUCTURES[name]())
    for training in (False, True):  # other ways to the first derivative
        model.train(training).requires_grad_(training)
        found = model(data).forces
        torch.testing.assert_close(
            found.detach(), finite_differences(model, data), rtol=1e-7, atol=1e-7
        )


@pytest.mark.parametrize("block", BLOCKS)
def test_engines_agree_with_second_derivatives(block: str) -> None:
    data = graph(STRUCTURES["small cell"]())
    found = []
    for engine in ("fast", "reference"):
        model = potential(block, ray_lengths=True)
        model.model.engine = engine_of(engine, None)
        forces = model.train()(data).forces
        weights = [each for each in model.parameters() if each.requires_grad]
        loss = forces.square().sum()
        by_weights = torch.autograd.grad(loss, weights, allow_unused=True, materialize_grads=True)
        found.append((forces.detach(), by_weights))
    torch.testing.assert_close(found[0][0], found[1][0], rtol=1e-10, atol=1e-11)
    for one, other in zip(found[0][1], found[1][1], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-9)


def test_the_product_reads_the_basis_of_both_rays_and_their_envelopes() -> None:
    """Against the formula, for three atoms: one angle each, of two rays."""
    torch.manual_seed(0)
    options = {"task": "node", "graph_state": False, "layers": 1, "hidden": 3, "envelope": True}
    options |= {"cutoff": CUTOFF, "radial": 4, "ray_lengths": True}
    model = build("combined-separable", **options).double()
    pos = torch.tensor([[0.0, 0, 0], [1.1, 0.2, 0], [-0.3, 0.9, 0.4]], dtype=torch.float64)
    index = torch.tensor([[j, i] for i in range(3) for j in range(3) if i != j]).T
    update = model.blocks[0].updates["angle"]
    (basis,) = [
        each.home for each in update.inputs if each.place == "first" and each.name == "bessel"
    ]
    seen = {}
    hook = update.register_forward_hook(
        lambda _, given, out: seen.update(sums=out.reduce("node", "sum"), state=given[0])
    )
    from torch_geometric.data import Data

    model(Data(pos=pos, edge_index=index))
    hook.remove()
    function, phi = seen["state"].functions[basis], update.phi
    for vertex in range(3):
        others = [k for k in range(3) if k != vertex]
        total = torch.zeros(phi.out, dtype=torch.float64)
        for j, k in itertools.permutations(others):
            rays = [pos[j] - pos[vertex], pos[k] - pos[vertex]]
            lengths = [ray.norm() for ray in rays]
            t = rays[0] @ rays[1] / (lengths[0] * lengths[1])
            value = phi.powers() @ torch.stack([t**p for p in range(phi.degree + 1)])
            for half, (place, end, d) in enumerate(
                zip(("first", "second"), (j, k), lengths, strict=True)
            ):
                columns = []
                for each, sides in zip(update.inputs, phi.sides, strict=True):
                    if not sides[half]:
                        continue
                    radial = function(pos[end][None], pos[vertex][None])[0]
                    columns.append(radial if each.name == "bessel" else torch.ones(1).double())
                    assert each.name != "bessel" or each.place == place
                factor = (phi.first, phi.second)[half]
                value = value * (factor(torch.cat(columns))) * fade(d / CUTOFF)
            total += value
        torch.testing.assert_close(seen["sums"][vertex].detach(), total.detach())


def test_symmetry_stays_and_blocks_without_lengths_or_angles_are_refused() -> None:
    assert build("combined", ray_lengths=True).symmetry == build("combined").symmetry
    for block in ("dgn", "agn"):
        with pytest.raises(ValueError, match=r"ray_lengths: .* use combined"):
            build(block, ray_lengths=True)
    with pytest.raises(ValueError, match="ray_lengths: is 1; give True or False"):
        build("combined", ray_lengths=1)  # type: ignore[arg-type]
