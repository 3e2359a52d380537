"""Angle flexes keep the angles at the vertices, and are no similarity, torsion or redrawing."""

from concurrent.futures import ThreadPoolExecutor

import networkx as nx
import pytest
import torch

from clouds import directed, graph_points, random_tree, rng, vertex_angles
from symgnn.geometry import AngleFlex, NoSuchTransformation
from symgnn.geometry.angle_rigidity import Angles, angle_flexes, known_motions

pytestmark = pytest.mark.usefixtures("one_thread")


def diamonds() -> nx.Graph:
    """Two diamonds that share a corner: in 4-d one turns about the plane of the other."""
    one = nx.Graph([(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)])
    return nx.compose(one, nx.relabel_nodes(one, {1: 4, 2: 5, 3: 6}))


CASES = {
    "hexagon in space": (nx.cycle_graph(6), 3, 3),
    "hexagon in four dimensions": (nx.cycle_graph(6), 4, None),
    "diamonds in four dimensions": (diamonds(), 4, 2),
}


@pytest.mark.parametrize("name", CASES)
def test_keeps_the_angles(name):
    graph, n, count = CASES[name]
    pos = graph_points(len(graph), n)
    flexes = angle_flexes(pos, graph, Angles(pos, graph))
    assert len(flexes) == count if count is not None else len(flexes) > 0
    for seed in range(3):
        image = AngleFlex.random(pos, directed(graph), generator=rng(seed))(pos)
        error = (vertex_angles(image, graph) - vertex_angles(pos, graph)).abs().max()
        assert error < 1e-11
        # edges turn: it is no redrawing
        i, j = directed(graph)
        before, after = pos[i] - pos[j], image[i] - image[j]
        turned = 1 - torch.cosine_similarity(before, after)
        assert turned.max() > 1e-3


def test_velocities_keep_the_angles_to_first_order():
    graph, pos = nx.cycle_graph(7), graph_points(7, 3)
    angles = Angles(pos, graph)
    for velocity in torch.cat([angle_flexes(pos, graph, angles), known_motions(pos, graph)]):
        step = 1e-5 * velocity.view_as(pos)
        change = angles.residual(pos + step) - angles.residual(pos - step)
        assert change.abs().max() < 1e-12


def test_the_matrix_is_the_derivative():
    """Of bent and straight angles, and of nodes in one place; against automatic derivatives."""
    graph, pos = nx.cycle_graph(9), graph_points(9, 3)
    pos[1], pos[6] = (pos[0] + pos[2]) / 2, pos[5]
    angles = Angles(pos, graph)
    assert [len(angles.bent[0]), len(angles.flat[0]), angles.short.size(1)] == [6, 1, 1]
    for x in (pos, pos + 0.1 * graph_points(9, 3, seed=4)):
        wanted = torch.func.jacrev(lambda y: angles.residual(y))(x).flatten(1)
        torch.testing.assert_close(angles.jacobian(x), wanted, rtol=0, atol=1e-13)


def test_in_several_threads():
    graph, pos = nx.cycle_graph(6), graph_points(6, 3)
    edges = directed(graph)

    def flexed(seed: int) -> torch.Tensor:
        return AngleFlex.random(pos, edges, generator=rng(seed))(pos)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(flexed, range(8)))
    for seed, image in enumerate(found):
        assert torch.equal(image, flexed(seed))


@pytest.mark.parametrize(
    ("graph", "n"),
    [(nx.complete_graph(4), 3), (nx.cycle_graph(6), 2), (random_tree(7, 2), 3), (diamonds(), 3)],
)
def test_no_more_than_the_graph_has(graph, n):
    """A plane polygon has redrawings only, a tree torsions and redrawings."""
    with pytest.raises(NoSuchTransformation, match="beyond similarities, torsions and redrawings"):
        AngleFlex.random(graph_points(len(graph), n), directed(graph), generator=rng())


def test_straight_angles_stay_straight():
    """A hexagon with two nodes more, in the middle of edges: the equations of those degenerate."""
    graph, pos = nx.cycle_graph(8), graph_points(8, 3)
    pos[1], pos[5] = (pos[0] + pos[2]) / 2, 0.3 * pos[4] + 0.7 * pos[6]
    image = AngleFlex.random(pos, directed(graph), generator=rng(2))(pos)
    error = (vertex_angles(image, graph) - vertex_angles(pos, graph)).abs().max()
    assert error < 1e-7  # of angles near pi, half of the digits
