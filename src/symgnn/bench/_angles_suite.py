"""AGN's angle update against concatenate-MLP-scatter, and against its own matrix products."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from symgnn.bench import _products as products
from symgnn.bench._measure import Rounds, Spread, Times, medians, paired
from symgnn.bench._shapes import POLYTOPES, SHAPES, Shape, superpixels
from symgnn.bench._speed_claims import SpeedClaim
from symgnn.bench._steps import HIDDEN, model_step, network, training_step
from symgnn.bench._suite import Suite, SuitePart
from symgnn.experiments import _polytope_training as polytope_training
from symgnn.experiments._polytope_training import Row
from symgnn.graphs import Topology
from symgnn.nn import AGN, MLP, Engine
from symgnn.nn._engine.policy import using_policy
from symgnn.nn.form import Width
from symgnn.nn.inputs import theta
from symgnn.nn.state import start
from symgnn.nn.update import Update

FINDING = (
    "Besides its matrix products, an update computes the swish and makes one pass over memory "
    "per operation; with few angles, the fixed cost of some ten operations counts too."
)


class AngleUpdate(nn.Module):
    """AGN's angle update summed over the angles of each node, on nodes and angles of width h."""

    def __init__(self, batch: Batch, hidden: int = HIDDEN) -> None:
        super().__init__()
        sizes = {"v": hidden, "e": 0, "a": hidden, "u": 0}
        self.update = Update("angle", AGN.angle, sizes, hidden, Width(hidden), {}, rows_read=False)
        self.engine = Engine()
        self.topology, self.pos = Topology.of(batch), batch.pos
        state, _ = start(AGN, self.pos, self.topology)
        self.theta = state.get(theta).rows

    def forward(self, v: Tensor, a: Tensor) -> Tensor:
        """`[N, h], [A, h] -> [N, h]`."""
        state, _ = start(AGN, self.pos, self.topology, x=v, angle_attr=a, engine=self.engine)
        state.measured[theta] = self.engine.values(state, "angle", self.theta)
        value: Tensor = self.update(state).reduce("node", "sum")
        return value


class Concatenated(nn.Module):
    """The same update with the same weights, as it is most often written."""

    def __init__(self, update: AngleUpdate) -> None:
        super().__init__()
        phi = update.update.phi
        assert isinstance(phi, MLP)
        self.first, self.last = phi.linears
        self.theta, self.angles = update.theta, update.topology.angle_index

    def forward(self, v: Tensor, a: Tensor) -> Tensor:
        """`[N, h], [A, h] -> [N, h]`."""
        first, vertex, second = self.angles
        rows = torch.cat([v[vertex], v[first], v[second], a, self.theta], 1)
        rows = self.last(nn.functional.silu(self.first(rows)))
        return v.new_zeros(v.shape[0], rows.shape[1]).index_add(0, vertex, rows)


def update_step(module: nn.Module, topology: Topology, hidden: int) -> Callable[[], None]:
    """A training step of one of the two, inside a network: nodes and angles get gradients too."""
    rng = torch.Generator().manual_seed(0)
    v = torch.randn(topology.num_nodes, hidden, generator=rng).requires_grad_()
    a = torch.randn(topology.num_angles, hidden, generator=rng).requires_grad_()
    return training_step(lambda: module(v, a).square().mean(), module.parameters(), (v, a))


def compare(shape: Shape, quick: bool, rounds: Rounds) -> Iterator[SpeedClaim]:
    """The update, concatenated, its products and its swish, all by turns."""
    torch.manual_seed(0)
    ours = AngleUpdate(shape.batch(quick))
    counted, swishes = products.of_update(ours.topology, HIDDEN)
    times = rounds.alternate(
        {
            "update": update_step(ours, ours.topology, HIDDEN),
            "concatenated": update_step(Concatenated(ours), ours.topology, HIDDEN),
            "products": products.products_only(counted),
            "swish": products.swish_only(swishes, HIDDEN),
        }
    )
    note = f"{ours.topology.num_angles:,} angles"
    ratio = paired(times["concatenated"], times["update"])
    seconds = medians(times, "concatenated", "update")
    yield SpeedClaim(
        shape.name, "concatenated over the update", ratio, 3.0, "least", seconds=seconds, note=note
    )
    yield from _over_products(shape.name, "update", times, 1.3)


def _over_products(
    shape: str, what: str, times: Times, bound: float | None
) -> Iterator[SpeedClaim]:
    ratio, seconds = paired(times[what], times["products"]), medians(times, what, "products")
    yield SpeedClaim(shape, f"{what} over its products", ratio, bound, seconds=seconds)
    both = [a + b for a, b in zip(times["products"], times["swish"], strict=True)]
    yield SpeedClaim(shape, f"{what} over products and swish", paired(times[what], both))


def whole_step(quick: bool, rounds: Rounds) -> Iterator[SpeedClaim]:
    """A step of the paper's network for polytopes, 32 and 64 numbers wide, over its products."""
    shape = POLYTOPES[4]
    batch = shape.batch(quick)
    model = polytope_training.network(Row("AGN", "mean"), batch.pos.shape[1], batch.num_graphs)
    counted, swishes = products.of_network(model.topology(batch), embedding=32, hidden=64)
    times = rounds.alternate(
        {
            "AGN": model_step(model, batch),
            "products": products.products_only(counted),
            "swish": products.swish_only(swishes, 64),
        }
    )
    yield from _over_products(shape.name, "AGN", times, None)


def in_tiles(counts: Sequence[int], rounds: Rounds) -> Iterator[SpeedClaim]:
    """All angles at once, over tiles that stay in the cache, on more and more superpixels."""
    for count in counts:
        batch = Batch.from_data_list(superpixels(count))
        model = network("agn", batch)
        step = model_step(model, batch)

        def run(worth: int, step: Callable[[], None] = step) -> None:
            with using_policy(worth_tiles=worth):
                step()

        times = rounds.alternate({"at once": partial(run, 2**60), "tiles": partial(run, 0)})
        ratio: Spread = paired(times["at once"], times["tiles"])
        note = f"{model.topology(batch).num_angles:,} angles"
        seconds = medians(times, "at once", "tiles")
        yield SpeedClaim(
            f"{count} superpixel graphs", "AGN at once over in tiles", ratio, None,
            seconds=seconds, note=note,
        )  # fmt: skip


def parts(quick: bool) -> list[SuitePart]:
    """The update on each shape, and what explains it."""
    found = [SuitePart(shape.name, partial(compare, shape, quick)) for shape in SHAPES]
    counts = (1,) if quick else (8, 32, 128)
    found.append(SuitePart(POLYTOPES[4].name, partial(whole_step, quick)))
    return [*found, SuitePart("superpixels", partial(in_tiles, counts))]


SUITE = Suite("angles", FINDING, parts)
