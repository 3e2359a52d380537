"""The weights of PyG's SchNet, DimeNet and DimeNet++."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from symgnn.nn.bases import Gaussians, Spherical
from symgnn.nn.build import build
from symgnn.nn.peers.schnet import ShiftedForm
from symgnn.nn.peers.weights.transfer import (
    Names,
    Reading,
    cannot,
    known_attributes,
    must_be,
    refuse,
    same_swish,
)

#: How PyG calls the aggregations that a graph read-out can have here.
READOUTS = {"SumAggregation": "sum", "MeanAggregation": "mean", "MaxAggregation": "max"}
SCHNET = """hidden_channels num_filters num_interactions num_gaussians cutoff dipole mean std scale
    atomref sum_aggr readout embedding interaction_graph distance_expansion interactions lin1 act
    lin2 initial_atomref atomic_mass"""
DIMENET = "cutoff max_num_neighbors num_blocks rbf sbf emb output_blocks interaction_blocks"


def schnet(peer: Any) -> Reading:
    """PyG's `SchNet`."""
    known_attributes(peer, SCHNET)
    # a mean or a deviation of 0 is set, too
    for name in ("mean", "std", "atomref", "scale"):
        must_be(peer, **{name: (getattr(peer, name), None)})
    readout, graph = type(peer.readout).__name__, type(peer.interaction_graph).__name__
    must_be(peer, interaction_graph=(graph, "RadiusInteractionGraph"))
    refuse(
        peer,
        dipole=peer.dipole,
        readout=None if readout in READOUTS else readout,
    )
    activations = [peer.act, *(a for i in peer.interactions for a in (i.act, i.mlp[1]))]
    for act in activations:
        must_be(peer, act=(type(act).__name__, "ShiftedSoftplus"))
        must_be(peer, shift=(act.shift, peer.act.shift))
    for layer in peer.interactions:
        must_be(peer, cutoff=(layer.conv.cutoff, peer.cutoff))
    model = build(
        "schnet",
        hidden=peer.hidden_channels,
        layers=_layers(peer, peer.interactions, "num_interactions"),
        outputs=peer.lin2.out_features,
        filters=peer.num_filters,
        basis=peer.num_gaussians,
        cutoff=peer.cutoff,
        types=peer.embedding.num_embeddings,
        aggregation={"e->v": "sum", "pool": READOUTS[readout]},
    )
    # the peer's constants are those of the default dtype in which it was made
    basis = model.measures["gaussians"]
    assert isinstance(basis, Gaussians)
    basis.centres = peer.distance_expansion.offset.detach().clone()
    basis.sharpness = peer.distance_expansion.coeff
    for form in model.modules():
        if isinstance(form, ShiftedForm):
            form.shift = peer.act.shift
    names = {
        "blocks.0.updates.node.phi.embedding": peer.embedding,
        "readouts.0.updates.node.phi.first": peer.lin1,
        "readouts.0.updates.node.phi.second": peer.lin2,
    }
    for k, layer in enumerate(peer.interactions, 1):
        edge, node = (f"blocks.{k}.updates.{domain}.phi" for domain in ("edge", "node"))
        names |= {
            f"{edge}.nodes": layer.conv.lin1,
            f"{edge}.first": layer.mlp[0],
            f"{edge}.second": layer.mlp[2],
            f"{node}.first": layer.conv.lin2,
            f"{node}.second": layer.lin,
        }
    return Reading(model, names)


def _layers(peer: Any, layers: Any, option: str) -> int:
    """How many layers there are; at least one."""
    if not len(layers):
        raise cannot(peer, f"{option}=0")
    return len(layers)


def dimenet(peer: Any) -> Reading:
    """PyG's `DimeNet` and `DimeNetPlusPlus`."""
    known_attributes(peer, DIMENET)
    layers = _layers(peer, peer.interaction_blocks, "num_blocks")
    plus = hasattr(peer.interaction_blocks[0], "lin_down")
    same_swish(peer, *(part.act for part in peer.modules() if hasattr(part, "act")))
    for basis in (peer.rbf, peer.sbf):
        exponents = basis.envelope.p - 1, peer.rbf.envelope.p - 1
        must_be(peer, cutoff=(basis.cutoff, peer.cutoff), envelope_exponent=exponents)
    must_be(peer, num_radial=(peer.sbf.num_radial, peer.rbf.freq.numel()))
    block, output = peer.interaction_blocks[0], peer.output_blocks[0]
    options: dict[str, Any] = {
        "degrees": peer.sbf.num_spherical,
        "basis": peer.sbf.num_radial,
        "cutoff": peer.cutoff,
        "exponent": peer.rbf.envelope.p - 1,
        "before_skip": len(block.layers_before_skip),
        "after_skip": len(block.layers_after_skip),
        "output_layers": len(output.lins),
        "types": peer.emb.emb.num_embeddings,
    }
    if plus:
        options |= {
            "interaction": block.lin_down.out_features,
            "basis_embedding": block.lin_rbf1.out_features,
            "output_embedding": output.lin_up.out_features,
        }
    else:
        options["bilinear"] = block.lin_sbf.out_features
    model = build(
        "dimenet++" if plus else "dimenet",
        hidden=block.lin.out_features,
        layers=layers,
        outputs=output.lin.out_features,
        **options,
    )
    spherical = model.measures["spherical"]
    assert isinstance(spherical, Spherical)
    spherical.tabulate(_closed_forms(peer.sbf))
    names: Names = {
        "measures.bessel.frequencies": peer.rbf.freq,
        "blocks.0.updates.node.phi.embedding": peer.emb.emb,
        "blocks.1.updates.edge.phi.basis": peer.emb.lin_rbf,
        "blocks.1.updates.edge.phi.linear": peer.emb.lin,
    }
    for k, block in enumerate(peer.interaction_blocks, 2):
        names |= _interaction(f"blocks.{k}.updates", block, plus)
    for k, output in enumerate(peer.output_blocks):
        node = f"readouts.{k}.updates.node.phi"
        names[f"readouts.{k}.updates.edge.phi.radial"] = output.lin_rbf
        names |= {f"{node}.linears.{i}": linear for i, linear in enumerate(output.lins)}
        names[f"{node}.last"] = output.lin
        if plus:
            names[f"{node}.up"] = output.lin_up
    return Reading(model, names)


def _interaction(name: str, block: Any, plus: bool) -> Names:
    angle, edge = f"{name}.angle.phi", f"{name}.edge.phi"
    names = {
        f"{angle}.message": block.lin_kj,
        f"{edge}.message": block.lin_ji,
        f"{edge}.linear": block.lin,
    }
    for ours, theirs in (("before", block.layers_before_skip), ("after", block.layers_after_skip)):
        for i, layer in enumerate(theirs):
            names[f"{edge}.{ours}.{i}.first"] = layer.lin1
            names[f"{edge}.{ours}.{i}.second"] = layer.lin2
    if not plus:
        return names | {
            f"{angle}.radial": block.lin_rbf,
            f"{angle}.angular": block.lin_sbf,
            f"{angle}.weight": block.W,
        }
    return names | {
        f"{angle}.radial.0": block.lin_rbf1,
        f"{angle}.radial.1": block.lin_rbf2,
        f"{angle}.angular.0": block.lin_sbf1,
        f"{angle}.angular.1": block.lin_sbf2,
        f"{angle}.down": block.lin_down,
        f"{edge}.up": block.lin_up,
    }


def _closed_forms(peer: Any) -> tuple[np.ndarray, np.ndarray]:
    """The peer's radial functions as `sum_m (c_m sin(z x) + d_m cos(z x)) / x^m`.

    They are j_l up to single precision, in which the peer computes its constants; to be equal in
    double precision, the constants are found again from the functions. Gives z `[l, k]` and the
    factors `[l, k, 2, l]`.
    """
    degrees, count = peer.num_spherical, peer.num_radial
    zeros = Spherical(degrees, count, 1.0, 5, "vertex").zeros.numpy()
    zeros = zeros.astype(np.float32).astype(np.float64)
    factors = np.zeros((degrees, count, 2, degrees))
    # further in, the closed forms themselves lose their digits
    x = torch.linspace(0.2, 1.0, 400, dtype=torch.float64)
    for degree in range(degrees):
        powers = x.numpy()[:, None] ** -np.arange(1, degree + 2)
        for k in range(count):
            values = peer.bessel_funcs[degree * count + k](x).numpy()
            phase = zeros[degree, k] * x.numpy()[:, None]
            columns = np.concatenate([np.sin(phase) * powers, np.cos(phase) * powers], 1)
            size = np.abs(columns).max(0)
            found = np.linalg.lstsq(columns / size, values, rcond=None)[0] / size
            if np.abs(columns @ found - values).max() > 1e-10 * np.abs(values).max():
                raise ValueError("from_peer: the peer's spherical basis is not that of DimeNet")
            factors[degree, k, :, : degree + 1] = found.reshape(2, degree + 1)
    return zeros, factors
