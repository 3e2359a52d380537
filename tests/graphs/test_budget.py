"""What does not fit into memory is refused before it is made, with a count that is right."""

import re
import subprocess
import sys

import numpy as np
import psutil
import pytest
import torch
from torch_geometric.data import Batch, Data

from symgnn.cli import main
from symgnn.data import NBody, integrate_charged, read
from symgnn.graphs import Topology, budget, knn_graph, neighbours, radius_graph
from symgnn.nn import build


@pytest.fixture
def no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing fits, be it as small as it may."""
    for module in (budget, neighbours):
        monkeypatch.setattr(module, "SMALL", 1)
    monkeypatch.setattr(budget, "available_memory", lambda device=None: 0)


@pytest.fixture
def eight_gigabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "available_memory", lambda device=None: 8 * 10**9)


def counted(error: pytest.ExceptionInfo[ValueError], what: str) -> int:
    """The number in a message of one line that names the memory, free and needed, and the fix."""
    text = str(error.value)
    assert "\n" not in text
    assert re.search(r"need about [\d,.]+ [GM]B of memory, and [\d,.]+ [GM]B are free; \w+", text)
    return int(re.search(rf"([\d,]+) {what}", text)[1].replace(",", ""))


def clouds() -> dict[str, torch.Tensor]:
    generator = np.random.default_rng(0)
    lattice = np.stack(np.meshgrid(*[np.arange(8.0)] * 3), -1).reshape(-1, 3)
    clusters = generator.normal(size=(500, 2)) * np.geomspace(0.01, 10, 500)[:, None]
    chosen = {
        "uniform": generator.random((500, 3)),
        "clusters of many densities": clusters,
        "a lattice": lattice,
        "all in one place": np.zeros((300, 3)),
        "far from the origin": generator.random((300, 3)) + 1e6,
        "on a line": generator.random((400, 1)),
        "in seven dimensions": generator.normal(size=(300, 7)),
    }
    return {name: torch.from_numpy(points) for name, points in chosen.items()}


@pytest.mark.parametrize("pos", clouds().values(), ids=clouds())
@pytest.mark.parametrize("r", [0.0, 0.3, 1.0, 1e4])
def test_edges_of_a_radius_are_counted_before(pos: torch.Tensor, r: float, no_room: None) -> None:
    with pytest.raises(ValueError, match=rf"^r: a radius of {r:g} joins \d+ nodes by ") as error:
        radius_graph(pos, r)
    expected = int((torch.cdist(pos, pos) <= r + 1e-9).sum())  # with the nodes themselves
    assert expected / 2 <= counted(error, "edges") <= 2 * expected


@pytest.mark.parametrize("pos", clouds().values(), ids=clouds())
@pytest.mark.parametrize("k", [1, 8, 60, 10_000])
def test_edges_to_the_nearest_are_counted_before(
    pos: torch.Tensor, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is counted is what is found, ties included: never much less, which would not fit."""
    found = []
    monkeypatch.setattr(neighbours, "SMALL", 1)
    monkeypatch.setattr(
        neighbours, "require_memory", lambda what, count, *more: found.append(count)
    )
    edges = knn_graph(pos, k).shape[1]
    assert edges / 2 <= max(found) <= 2 * edges + neighbours._SPARE * 2 * len(pos)


def test_ties_that_do_not_fit(eight_gigabytes: None) -> None:
    """20,000 nodes in one place are each other's nearest, all of them."""
    with pytest.raises(ValueError, match=r"^k: 20,000 of 20,000 nodes have so many") as error:
        knn_graph(torch.zeros(20_000, 3), 8)
    assert counted(error, "edges") == 20_000**2
    with pytest.raises(ValueError, match=r"^k: 15000 neighbours of each of 20,000 nodes") as error:
        knn_graph(torch.rand(20_000, 3), 15_000)
    assert counted(error, "edges") == pytest.approx(20_000 * 15_000, rel=0.01)


def test_a_radius_that_joins_everything(eight_gigabytes: None, tmp_path) -> None:
    pos = torch.rand(20_000, 3) * 60
    message = r"^r: a radius of 10000 joins 20,000 nodes by 400,000,000 edges, .*smaller radius"
    with pytest.raises(ValueError, match=message):
        radius_graph(pos, 1e4)
    torch.save(Data(pos=pos), tmp_path / "a.pt")
    with pytest.raises(ValueError, match=r"a\.pt: r: a radius of 10000 joins 20,000 nodes"):
        read(tmp_path / "a.pt", radius=1e4)


def star(leaves: int) -> Data:
    """All angles are at one vertex."""
    edge_index = torch.stack([torch.zeros(leaves, dtype=torch.long), torch.arange(1, leaves + 1)])
    return Data(pos=torch.rand(leaves + 1, 3), edge_index=edge_index)


def test_angles_are_counted_before(no_room: None) -> None:
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(0, 50, (2, 400), generator=generator)
    both = torch.cat([edge_index, edge_index.flip(0)], 1)
    adjacent = torch.zeros(50, 50).index_put((both[0], both[1]), torch.ones(1)).fill_diagonal_(0)
    degree = adjacent.sum(1)
    with pytest.raises(ValueError, match=r"^edge_index: .*, build\(\.\.\., chunk=") as error:
        Topology.build(edge_index, 50)
    assert counted(error, "angles") == int((degree * (degree - 1)).sum())
    assert Topology.build(edge_index, 50, angles=False).num_edges == 400


def test_the_advice_on_angles_helps(eight_gigabytes: None) -> None:
    """In parts, the angles of a node with 20,000 neighbours are not refused."""
    data = star(20_000)
    model = build("agn", hidden=2, layers=1)
    with pytest.raises(ValueError, match=r"edges between 20,001 nodes make 399,980,000 angles"):
        model(data)
    parts = build("agn", hidden=2, layers=1, chunk=1_000_000).topology(data)
    assert parts.num_angles == 20_000 * 19_999


def test_pairs_are_counted_before(no_room: None) -> None:
    batch = Batch.from_data_list([star(leaves) for leaves in (3, 5, 1)])
    with pytest.raises(ValueError, match=r"^pos: 12 nodes \(graphs: 3\) make ") as error:
        Topology.of(batch, angles=False, pairs=True)
    assert counted(error, "pairs") == 4 * 3 + 6 * 5 + 2


def test_a_map_over_all_pairs(eight_gigabytes: None) -> None:
    model = build("dgn", task="coordinates", coordinate_map="egcn", hidden=2, layers=1)
    assert model.needs_pairs
    with pytest.raises(
        ValueError, match=r"^pos: 20,001 nodes \(graphs: 1\) make 400,020,000 pairs"
    ):
        model(star(20_000))


def test_complete_graphs_of_particles(eight_gigabytes: None) -> None:
    with pytest.raises(
        ValueError, match=r"^particles: 3,000 complete graphs of 1,000 have 2,997,000,000"
    ):
        NBody("train", particles=1000)
    many = torch.zeros(10, 20_000, 1)
    with pytest.raises(ValueError, match=r"^pos: 10 trajectories of 20,000 particles have 1,999,"):
        integrate_charged(many, many, many[..., 0])


# ---------------------------------------------------------------- the memory that there is

LIMITED = """
import resource, torch
from symgnn.graphs import radius_graph, budget
pos = torch.rand(20_000, 3)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 10**9, resource.RLIM_INFINITY))
assert 0 < budget.available_memory() <= 10**9
radius_graph(pos, 0.02)
try:
    radius_graph(pos, 1e4)
except ValueError as error:
    print(error)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs limits of a process")
def test_the_limit_of_the_process_counts() -> None:
    """With `ulimit -v`, a gigabyte is left: no MemoryError, but a line."""
    call = [sys.executable, "-c", LIMITED]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("r: a radius of 10000 joins 20,000 nodes by 400,000,000 edges")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"memory.max": "max", "memory.current": "5"}, None),
        ({"memory.max": "1000", "memory.current": "700"}, None),  # without memory.stat: not known
        (
            {
                "memory.max": "1000",
                "memory.current": "700",
                "memory.stat": "anon 1\ninactive_file 50",
            },
            350,
        ),
        (
            {
                "memory/memory.limit_in_bytes": "900",
                "memory/memory.usage_in_bytes": "100",
                "memory/memory.stat": "cache 1\ntotal_inactive_file 7\n",
            },
            807,
        ),
    ],
)
def test_the_limit_of_the_container_counts(files, expected, tmp_path, monkeypatch) -> None:
    (tmp_path / "memory").mkdir()
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    monkeypatch.setattr(budget, "_CGROUP", tmp_path)
    machine = psutil.virtual_memory().available
    if expected is None:
        assert budget.available_memory() > machine / 2
    else:
        assert budget.available_memory() == expected


@pytest.mark.parametrize(
    "error",
    [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried\nto")],
)
def test_the_command_says_it_in_a_line(error, monkeypatch, capsys) -> None:
    def fail(options: object) -> int:
        raise error

    monkeypatch.setattr("symgnn.commands.demo.run", fail)
    assert main(["demo"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("symgnn: there is not enough memory (")
    assert said.count("\n") == 1
