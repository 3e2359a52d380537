"""The paper's pictures of what its networks tell apart, in numbers."""

import pytest
import torch

from symgnn.experiments._shape_comparison import COMPARISONS, SAME, draw, measured, shape
from symgnn.geometry import angle
from symgnn.graphs import Topology

#: What each block keeps of the paper's figure of the two networks.
KEPT = {
    "dgn": {"square", "rhombus", "line"},
    "agn": {"square", "rectangle"},
    "combined": {"square"},
}


def test_the_square_and_its_kin():
    for (block, name), change in measured("square").items():
        assert (change <= SAME) == (name in KEPT[block]), (block, name, change)
        assert name in KEPT[block] or change > 1e-3, (block, name, change)


def test_a_hexagon_and_two_triangles():
    found = measured("hexagon")
    assert found["dgn", "two triangles"] <= 1e-14
    assert found["agn", "two triangles"] > 1e-3
    assert found["combined", "two triangles"] > 1e-3


@pytest.mark.parametrize("name", [name for shapes, _ in COMPARISONS.values() for name in shapes])
def test_the_shapes_have_the_sides_and_angles_they_should(name):
    data = shape(name)
    source, target = data.edge_index
    lengths = (data.pos[source] - data.pos[target]).norm(dim=1)
    assert lengths.min() == pytest.approx(1.0)
    assert lengths.max() == pytest.approx(2.0 if name == "rectangle" else 1.0)
    j, i, k = Topology.build(data.edge_index, data.num_nodes).angle_index
    angles = angle(data.pos[j] - data.pos[i], data.pos[k] - data.pos[i])
    right = {"square": 90.0, "rectangle": 90.0, "hexagon": 120.0, "two triangles": 60.0}
    if name in right:
        wanted = torch.full_like(angles, right[name])
        torch.testing.assert_close(torch.rad2deg(angles), wanted)
    else:
        assert float(angles.min()) < 1.1


def test_an_unknown_shape():
    with pytest.raises(ValueError, match="shape: 'circle' is not known; choose from square"):
        shape("circle")


@pytest.mark.parametrize("name", COMPARISONS)
def test_the_pictures_are_drawn(name, tmp_path):
    pytest.importorskip("matplotlib")
    assert draw(name, tmp_path / f"{name}.png").stat().st_size > 5000
