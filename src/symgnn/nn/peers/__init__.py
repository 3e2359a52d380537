"""Published networks as specifications, numerically equal to their own code."""

from collections.abc import Callable

from symgnn.nn.peers.appendix import FORMULAS
from symgnn.nn.peers.dimenet import dimenet, dimenet_plus_plus
from symgnn.nn.peers.egnn import egnn
from symgnn.nn.peers.isogcn import isogcn
from symgnn.nn.peers.schnet import schnet
from symgnn.nn.spec import Network

#: Published networks as specifications, by the names that `build` takes.
PEERS: dict[str, Callable[..., Network]] = {
    "egnn": egnn,
    "schnet": schnet,
    "dimenet": dimenet,
    "dimenet++": dimenet_plus_plus,
    "isogcn": isogcn,
}

__all__ = ["FORMULAS", "PEERS", "dimenet", "dimenet_plus_plus", "egnn", "isogcn", "schnet"]
