"""Suggested repairs for known kinds of submodules that break a symmetry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

from symgnn.audit._session import Session

if TYPE_CHECKING:
    from symgnn.audit._findings import Finding

_NORMS = (
    nn.LayerNorm,
    nn.BatchNorm1d,
    nn.BatchNorm2d,
    nn.InstanceNorm1d,
    nn.GroupNorm,
)
_POINTWISE = (
    nn.ReLU,
    nn.SiLU,
    nn.GELU,
    nn.Tanh,
    nn.Sigmoid,
    nn.ELU,
    nn.LeakyReLU,
    nn.Softplus,
    nn.Softmax,
)
_ORDERED = (nn.Conv1d, nn.LSTM, nn.GRU, nn.RNN, nn.Flatten)
_SEARCH = ("radius", "neighbo", "knn", "graph", "search", "capped")


def suggestion(session: Session, finding: Finding) -> str:
    """A fix in one sentence; "" where none is known."""
    if finding.kind == "reflection" and _is_mirrored_stress(finding):
        return (
            f"{finding.key[1]}: it changes its sign in a left-handed cell, which a mirror image "
            "has; divide by the absolute value of the volume"
        )
    if finding.where is None:
        return ""
    module = _module(session, finding.where.module)
    name, kind = finding.where.module or type(module).__name__, finding.kind
    if kind == "permutation":
        return _for_order(module, name, finding)
    if kind == "reflection" and "in the function itself" in str(finding.where):
        return ""
    if kind == "reflection":
        return (
            f"{name}: a feature that changes its sign in a mirror is mixed with ones that do not; "
            "square it, take its absolute value, or keep the two kinds apart"
        )
    if kind in ("translation", "rotation"):
        return _for_space(module, name, kind, finding)
    return ""


def _is_mirrored_stress(finding: Finding) -> bool:
    example = finding.counterexample
    if example is None or "stress" not in finding.key[1].lower():
        return False
    wanted, found = example.expected, example.after
    if wanted.shape != found.shape:
        return False
    return bool((wanted + found).abs().max() <= 1e-3 * wanted.abs().max())


def _module(session: Session, name: str) -> nn.Module | None:
    for root in session.target.modules:
        try:
            return getattr(root, "_orig_mod", root).get_submodule(name)
        except AttributeError:
            continue
    return None


def _for_order(module: nn.Module | None, name: str, finding: Finding) -> str:
    text = str(finding.where)
    if isinstance(module, _ORDERED):
        return (
            f"{name}: a {type(module).__name__} over nodes depends on their order; use a sum or a "
            "mean over nodes, or a layer on edges"
        )
    if isinstance(module, nn.Embedding):
        return f"{name}: an embedding of the number of a node depends on the order of the nodes"
    whole = f"{name} {type(module).__name__} {text}".lower()
    if any(word in whole for word in _SEARCH) or "before it calls" in text:
        return (
            f"{name}: where the neighbours are found there, a cap (max_num_neighbors) keeps the "
            "first ones in the order of the nodes; raise it above the largest number of "
            "neighbours, or keep the nearest"
        )
    return ""


def _for_space(module: nn.Module | None, name: str, kind: str, finding: Finding) -> str:
    if isinstance(module, _NORMS):
        return (
            f"{name}: a {type(module).__name__} on the components of vectors or coordinates "
            "depends on the axes; divide vectors by a norm of theirs, or normalise invariants only"
        )
    if isinstance(module, _POINTWISE):
        return (
            f"{name}: a {type(module).__name__} on each component of a vector depends on the axes; "
            "multiply the vector by a function of its length instead"
        )
    if isinstance(module, nn.Dropout):
        return f"{name}: dropout of single components depends on the axes; drop whole vectors"
    if isinstance(module, nn.Linear):
        if module.bias is not None and kind == "rotation":
            return (
                f"{name}: a bias on a channel of vectors, or a weight on their components, prefers "
                "a direction; use bias=False and let the layer mix channels, not components"
            )
        return (
            f"{name}: it mixes coordinates with other numbers; let it read distances, or "
            "differences of coordinates as vectors"
        )
    if module is not None and "itself" in str(finding.where):
        return (
            f"{name}: look for a mean, a norm or a product over the axis of the components, where "
            "the axis of the nodes was meant, and for coordinates that are read as they are"
        )
    return ""
