"""The topology as a transform of PyG datasets."""

from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from symgnn.graphs.checks import check_edges, check_positions
from symgnn.graphs.rays import ranks_of
from symgnn.graphs.topology import Topology


class AddTopology(BaseTransform):
    """A PyG transform that computes the expensive part of the topology once per graph.

    It sorts the neighbours of each node and stores the rank of each edge's ends among them as
    `data.ray_ranks [E, 2]`, a plain tensor that PyG's `DataLoader` batches in its worker processes.
    `Topology.of(batch)`, which the models call, then need not sort. Apply it after the edges are
    final: ranks of other edges are not used. On a `Batch`, or with `attach=True`, the complete
    `Topology` is also attached as `data.topology`, for `torch.compile(fullgraph=True)` and
    full-batch training.

    Example:
        >>> graph = symgnn.graphs.AddTopology()(symgnn.data.polytope("simplex", 3))
        >>> symgnn.nn.build("agn")(graph).shape
        torch.Size([1, 1])
    """

    def __init__(self, attach: bool = False, pairs: bool = False) -> None:
        self.attach = attach
        self.pairs = pairs

    def forward(self, data: Data) -> Data:
        """Check the graph and add the ranks of its rays."""
        check_positions(getattr(data, "pos", None))
        check_edges(
            getattr(data, "edge_index", None), data.pos.shape[0], getattr(data, "batch", None)
        )
        data.topology = None
        shift = getattr(data, "edge_shift", None)
        data.ray_ranks = ranks_of(data.edge_index, data.pos.shape[0], shift)
        if self.attach or hasattr(data, "ptr"):
            data.topology = Topology.of(data, pairs=self.pairs)
        else:
            del data.topology
        return data

    def __repr__(self) -> str:
        return "AddTopology()"
