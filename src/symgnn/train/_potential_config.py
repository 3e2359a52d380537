"""Defaults of a run that trains a potential."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from symgnn._argument_checks import check_positive
from symgnn.nn.architectures import ARCHITECTURES
from symgnn.nn.filtered import FILTERED, is_filtered
from symgnn.nn.inputs import Reduction, d2, kappa, theta
from symgnn.nn.peers import PEERS
from symgnn.nn.separable import conformal_product
from symgnn.nn.spec import Spec
from symgnn.nn.variants import SEPARABLE, variant_of, variant_options
from symgnn.train._settings import Training

#: How far atoms see each other, in Angstrom, and how many radial functions they read.
CUTOFF, RADIAL = 5.5, 20
#: Of blocks whose messages are filtered by radial functions: a filter of fast functions learns more
#: slowly, and without hidden layers nodes can be wider.
FILTER_RADIAL, FILTER_WIDTH = 8, 64
#: How potentials are trained if nothing else is said: small batches, as one configuration has many
#: forces, and a rate that falls to 0. Gradients are clipped, and the rate rises first: energies of
#: products of messages have some gradients that are far larger than the others, and a few steps
#: along them at the start can leave a potential whose errors are many times the forces.
TRAINING: dict[str, Any] = {
    "batch_size": 8,
    "learning_rate": 5e-3,
    "schedule": "cosine",
    "target_weights": {"forces": 10.0},
    "clip": 10.0,
}
#: The rate rises in one epoch, or in this part of them if they are few.
WARMING = 0.05
#: Options that the record of a run always has; those that it lacks are newer than the run.
RECORDED = {"block", "node_types", "mlp_layers", "engine"}


def training_of_potential(given: Mapping[str, Any]) -> dict[str, Any]:
    """The section `train` with the defaults of a potential, if it has targets of one."""
    targets = given.get("targets")
    if not isinstance(targets, list | tuple):
        return dict(given)
    epochs = given.get("epochs", Training.epochs)
    defaults = dict(TRAINING)
    if isinstance(epochs, int) and epochs > 0:  # others are refused later
        defaults["warmup"] = min(1.0, WARMING * epochs)
    if "forces" not in targets:
        del defaults["target_weights"]
    return {**defaults, **given}


def for_potential(
    data: Mapping[str, Any],
    model: Mapping[str, Any],
    targets: Sequence[str] | None,
    *,
    reads: bool,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The sections `data` and `model` of a potential, with its defaults: atoms joined up to the
    cutoff, through the walls of a cell; a network that embeds elements, sums over neighbours that
    fade out, reads cosines and a radial basis, and has no state of the whole graph.

    Args:
        data, model: The sections as they were given.
        targets: Those of the potential; None for another task, whose sections stay as they are.
        reads: Whether graphs are made of files or atoms, not given as graphs.
    """
    data, model = dict(data), dict(model)
    if targets is None or model.keys() >= RECORDED:
        return data, model
    block = model.get("block")
    cutoff = check_positive("model.cutoff", model.get("cutoff", CUTOFF))
    defaults: dict[str, Any] = {"node_types": "atoms", "graph_state": False, "residual": True}
    spec = _block(block, model)
    if spec is not None:
        home = {each.of if isinstance(each, Reduction) else each.home for each in spec.all_inputs}
        smooth = kappa not in home and conformal_product not in home and spec.scaling is None
        if smooth:
            defaults |= {"cutoff": cutoff, "envelope": True}
        if theta in home:
            defaults["cosines"] = True
        if spec.angle and d2 in {each.home for each in spec.edge}:
            defaults["ray_lengths"] = True
        if d2 in home and smooth:
            defaults["radial"] = FILTER_RADIAL if is_filtered(spec) else RADIAL
        if is_filtered(spec):
            defaults["hidden"] = FILTER_WIDTH
    elif str(block).lower() in PEERS:
        defaults = {}
    wanted = {"level": "potential", "columns": list(targets), "radius": cutoff, "elements": []}
    wanted = wanted if reads else {}
    for name in ("level", "columns"):
        if name in data and name in wanted and data[name] != wanted[name]:
            raise ValueError(
                f"data.{name}: is {data[name]!r}, but train.targets are {list(targets)}; remove "
                f"data.{name}"
            )
    if float(data.get("radius", cutoff)) < float(cutoff):
        raise ValueError(
            f"data.radius: is {data['radius']}, below model.cutoff, {cutoff}; give at least that"
        )
    return {**wanted, **data}, {**defaults, **model}


def _block(name: Any, model: Mapping[str, Any]) -> Spec | None:
    """The block of a name, with the options of the section `model` for it; None of peers."""
    spec = {**ARCHITECTURES, **SEPARABLE, **FILTERED}.get(str(name).lower())
    options = {key: model[key] for key in variant_options() if key in model}
    return None if spec is None else variant_of(spec, **options, dimension=3)
