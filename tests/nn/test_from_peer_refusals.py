"""Options of peers that have no counterpart are refused by name and value"""

from typing import Any

import pytest
import torch
from torch import nn
from torch_geometric.nn.models import SchNet

from nn.egnn_layers import CleanLayer, CleanNetwork, RecurrentLayer
from nn.from_peer_cases import PEERS, egnn_pytorch, equal, randomised, run_layer
from nn.peers import directed, molecules
from symgnn.nn import build, from_peer, to_peer


@torch.no_grad()
def test_the_clamp_of_gcl() -> None:
    """It is always there; in egnn_clean it never is."""
    batch = directed(molecules())
    batch.pos = 1e4 * batch.pos
    for make, bound in ((RecurrentLayer, True), (CleanLayer, False)):
        module = randomised(make(6, 6, 10, act_fn=nn.SiLU()))
        theirs, mine = run_layer(module, from_peer(module), batch)
        torch.testing.assert_close(mine[1], theirs[1], rtol=1e-10, atol=0)
        assert (float((mine[1] - batch.pos).abs().max()) < 101) == bound


@pytest.mark.parametrize("readout", ["max", "powermean", "median", "softmax"])
def test_read_outs_of_schnet(readout: str) -> None:
    peer = PEERS["SchNet"]
    module = randomised(peer.make(**peer.sizes, readout=readout))
    if readout == "max":
        equal(peer, module)
    else:
        with pytest.raises(ValueError, match=r"SchNet was made with readout=\w*Aggregation"):
            from_peer(module)


def _sparse(**options: Any) -> nn.Module:
    return egnn_pytorch.EGNN_Sparse(6, **options)


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (_sparse(aggr="max"), "aggr=max"),
        (_sparse(flow="target_to_source"), "flow=target_to_source"),
        (_sparse(node_dim=0), "node_dim=0"),
        (SchNet(8, 6, 0), "num_interactions=0"),
        (CleanNetwork(4, 6, 2, n_layers=0), "n_layers=0"),
        (egnn_pytorch.EGNN(6, num_nearest_neighbors=3), "num_nearest_neighbors=3"),
    ],
)
def test_the_value_of_a_refused_option_is_named(module: nn.Module, message: str) -> None:
    expected = f"^from_peer: {type(module).__name__} was made with {message}"
    with pytest.raises(ValueError, match=expected):
        from_peer(module)


def test_parts_and_options_that_a_copy_of_the_code_adds_are_refused() -> None:
    for name, value in (("norm_constant", 1), ("coords_range", 15.0), ("gru", nn.GRUCell(6, 6))):
        module = CleanLayer(6, 6, 10)
        setattr(module, name, value)
        with pytest.raises(ValueError, match=f"E_GCL was made with {name}="):
            from_peer(module)
    module = CleanLayer(6, 6, 10)
    module.node_mlp.append(nn.Linear(6, 6))
    with pytest.raises(ValueError, match=r"the parameter node_mlp\.3\.weight \[6, 6\]"):
        from_peer(module)


def test_one_type_for_all_parameters() -> None:
    module = CleanLayer(6, 6, 10)
    module.edge_mlp.double()
    with pytest.raises(ValueError, match=r"E_GCL are torch\.float32 on cpu, torch\.float64 on cpu"):
        from_peer(module)


def test_weights_go_back_only_where_they_mean_the_same() -> None:
    ours = from_peer(RecurrentLayer(6, 6, 10, act_fn=nn.SiLU(), coords_weight=0.5))
    other = RecurrentLayer(6, 6, 10, act_fn=nn.SiLU())
    with pytest.raises(ValueError, match=r"to_peer: block\.map\.weight does not fit; it is 0\.5"):
        to_peer(ours, other)
    with pytest.raises(ValueError, match=r"gate\.weight does not fit"):
        to_peer(from_peer(CleanLayer(6, 6, 10, attention=True)), CleanLayer(6, 6, 10))
    with pytest.raises(ValueError, match=r"is torch\.float64, which torch\.float32 of the E_GCL"):
        to_peer(from_peer(CleanLayer(6, 6, 10).double()), CleanLayer(6, 6, 10))
    small = {"hidden": 8, "filters": 6, "layers": 1, "basis": 5, "cutoff": 4.0}
    peer = SchNet(8, 6, 1, 5, cutoff=4.0)
    assert to_peer(build("schnet", **small), peer) is peer
    with pytest.raises(ValueError, match="does not fit"):
        to_peer(build("schnet", **{**small, "cutoff": 5.0}), peer)
