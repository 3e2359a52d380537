"""Every pair of block and coordinate map, with features and tasks: it runs, or it is refused."""

import itertools
from random import Random

import pytest
import torch
from torch_geometric.data import Batch, Data

from helpers import both_ways, cliques, distance, rng
from properties.networks import FEATURES, FIELD, SMALL, TASKS, Case, random_graph, with_features
from symgnn.nn import ARCHITECTURES, COORDINATE_MAPS, PEERS, Model, build

BLOCKS = [*ARCHITECTURES, *PEERS]
#: Where the edge update reads angles, or where there is none, it cannot run on all pairs.
NOT_ON_ALL_PAIRS = {"agn-to-edges", "dimenet", "dimenet++", "isogcn"}
ALL = frozenset({"node", "edge", "angle", "graph"})
#: The features that a block reads, where it does not read all.
SOME = {
    **dict.fromkeys(("gn", "dgn", "sdgn", "agn-raw"), ALL - {"angle"}),
    **dict.fromkeys(("schnet", "dimenet", "dimenet++"), frozenset()),
    "egnn": frozenset({"node", "edge"}),
    "isogcn": frozenset({"node"}),
}
READ = {block: SOME.get(block, ALL) for block in BLOCKS}
#: The features that a map reads besides: those of edges, nodes and graphs.
READ_BY_MAP = {
    **dict.fromkeys(("scale-u", "shift-u", "rigid-u"), frozenset({"graph"})),
    **dict.fromkeys(("egcn", "egcn-neighbours"), frozenset({"edge"})),
    "neighbour-sum": ALL - {"angle"},
}


def allowed(block: str, psi: str, task: str, features: dict[str, int]) -> bool:
    """Whether there is such a network."""
    if task == "coordinates" and psi == "identity":
        return False
    if psi == "egcn" and block in NOT_ON_ALL_PAIRS:
        return False
    if task not in ("graph", "node") and block in SMALL:
        return False
    given = {name.removesuffix("_features") for name, size in features.items() if size}
    if block in SMALL and "node" in given:
        return False
    return given <= READ[block] | READ_BY_MAP.get(psi, frozenset())


def made(block: str, psi: str, **options) -> Model:
    torch.manual_seed(0)
    sizes = {"hidden": 4, "mlp_hidden": 4, "layers": 2, "outputs": 2, **SMALL.get(block, {})}
    return build(block, coordinate_map=psi, **{**sizes, **options}).double()


def assert_runs_or_is_refused(block: str, psi: str, features: dict[str, int], **options) -> None:
    case = f"{block}, {psi}, {options}, {features}"
    if not allowed(block, psi, options["task"], features):
        with pytest.raises((ValueError, TypeError), match=FIELD) as error:
            made(block, psi, **features, **options)
        assert "\n" not in str(error.value), case
        return
    model = made(block, psi, **features, **options)
    random, n = Random(0), options["dimension"]
    network = Case(block, options, features, model)
    graphs = [with_features(random_graph(random, n, 1.0), network, random) for _ in range(3)]
    batch = Batch.from_data_list(graphs)
    batch.pos.requires_grad_()
    output = model(batch)
    width = n if options["task"] == "coordinates" else 2
    rows = {"graph": 3, "edge": batch.num_edges}.get(options["task"], batch.num_nodes)
    assert output.shape == (rows, width), case
    output.sum().backward()
    found = {"output": output, "pos": batch.pos.grad}
    found |= {name: p.grad for name, p in model.named_parameters()}
    wrong = [name for name, t in found.items() if t is not None and not t.isfinite().all()]
    assert not wrong, f"{case}: not finite: {wrong}"


def widths(*names: str) -> dict[str, int]:
    return {name: 2 if name.removesuffix("_features") in names else 0 for name in FEATURES}


@pytest.mark.parametrize("psi", COORDINATE_MAPS)
@pytest.mark.parametrize("block", BLOCKS)
def test_every_pair_of_block_and_map(block: str, psi: str) -> None:
    number = BLOCKS.index(block) + list(COORDINATE_MAPS).index(psi)
    options = {"dimension": 1 + number % 5, "aggregation": ("sum", "mean", "max")[number % 3]}
    task = "graph" if block in SMALL or psi == "identity" else "coordinates"
    options |= {"task": task, "chunk": (None, 3)[number % 2]}
    assert_runs_or_is_refused(block, psi, widths(*READ[block]), **options)


@pytest.mark.slow
@pytest.mark.parametrize("psi", COORDINATE_MAPS)
@pytest.mark.parametrize("block", BLOCKS)
def test_every_pair_with_all_features_and_tasks(block: str, psi: str) -> None:
    kinds = [name.removesuffix("_features") for name in FEATURES]
    sets = [s for k in range(len(kinds) + 1) for s in itertools.combinations(kinds, k)]
    for number, (task, names) in enumerate(itertools.product(TASKS, sets)):
        assert_runs_or_is_refused(
            block,
            psi,
            widths(*names),
            task=task,
            dimension=1 + number % 5,
            aggregation=("sum", "mean", "max")[number % 3],
            graph_state=bool(number % 4),
            chunk=(None, 1, 5)[number % 3],
            layers=1 + number % 3,
        )


# ------------------------------------------------------------------ what the result is


def complete(n: int = 3, nodes: int = 5) -> Data:
    pos = torch.randn(nodes, n, generator=rng(2), dtype=torch.float64)
    edges = both_ways(cliques([list(range(nodes))]))
    return Data(pos=pos, edge_index=edges)


@pytest.mark.parametrize("block", [b for b in BLOCKS if b not in NOT_ON_ALL_PAIRS])
def test_all_pairs_are_the_neighbours_of_a_complete_graph(block: str) -> None:
    features = widths(*READ[block])
    models = [
        made(block, psi, dimension=3, task="graph", **features)
        for psi in ("egcn", "egcn-neighbours")
    ]
    models[1].load_state_dict(models[0].state_dict())
    network = Case(block, {}, features, models[0])
    data = with_features(complete(), network, Random(1))
    assert distance(*(model(data) for model in models)) < 1e-12
    # and the coordinates that the map has moved matter
    still = made(block, "identity", dimension=3, task="graph", **features)
    still.load_state_dict(models[0].state_dict(), strict=False)
    assert block in ("gn",) or distance(models[0](data), still(data)) > 1e-9


def test_edges_that_are_not_there_have_features_of_zero() -> None:
    """One layer of EGNN over all pairs, with the features that came with the graph."""
    model = made("egnn", "egcn", task="coordinates", layers=1, edge_features=2)
    full = complete()
    full.edge_attr = torch.randn(full.num_edges, 2, generator=rng(3), dtype=torch.float64)
    kept = torch.arange(full.num_edges) % 3 > 0
    some = Data(pos=full.pos, edge_index=full.edge_index[:, kept], edge_attr=full.edge_attr[kept])
    full.edge_attr = full.edge_attr * kept.unsqueeze(1)
    assert distance(model(some), model(full)) < 1e-12
    some.edge_attr = -some.edge_attr
    assert distance(model(some), model(full)) > 1e-6


def test_all_pairs_need_the_edges_before_the_coordinates() -> None:
    from symgnn.nn import DGN

    spec = DGN.replace(order=["coordinates", "angle", "edge", "node", "graph"])
    with pytest.raises(ValueError, match=r"^coordinate_map: egcn .* comes after the coordinates"):
        build(spec, coordinate_map="egcn", task="coordinates")
