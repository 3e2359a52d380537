"""The topology as a transform of PyG datasets."""

from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from symgnn.topology.checks import check_edges, check_positions
from symgnn.topology.rays import sorted_rays
from symgnn.topology.topology import Topology


class AddTopology(BaseTransform):
    """A PyG transform that does the expensive part of the topology once per graph.

    It sorts each node's neighbours into `data.ray_index [2, R]`, a plain tensor that PyG's
    `DataLoader` batches like `edge_index`, in its worker processes; `Topology.of(batch)`, which
    the models call, starts from it. Apply it after the edges are final. On a `Batch`, or with
    `attach=True`, the finished `Topology` is attached as `data.topology` too, as
    `torch.compile(fullgraph=True)` and full-batch training want it.
    """

    def __init__(self, attach: bool = False, pairs: bool = False) -> None:
        self.attach = attach
        self.pairs = pairs

    def forward(self, data: Data) -> Data:
        """Check the graph and add its sorted rays."""
        check_positions(getattr(data, "pos", None))
        check_edges(
            getattr(data, "edge_index", None), data.pos.shape[0], getattr(data, "batch", None)
        )
        data.topology = None
        data.ray_index = sorted_rays(data.edge_index, data.pos.shape[0])
        if self.attach or hasattr(data, "ptr"):
            data.topology = Topology.of(data, pairs=self.pairs)
        else:
            del data.topology
        return data

    def __repr__(self) -> str:
        return "AddTopology()"
