"""Which of the types that an output can have by its shape it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from torch import Tensor

from symgnn._argument_checks import suggestion
from symgnn.audit._outputs import PLACES, Output
from symgnn.audit._representations import canonical, parse_irreps, parse_weight, size_of

#: Types that a name rules out: an energy that changes its sign in a mirror is a fault.
NEVER = {
    "energy": ("pseudoscalar",),
    "energies": ("pseudoscalar",),
    "force": ("pseudovector", "coordinates"),
    "dipole": ("pseudovector", "coordinates"),
    "velocit": ("pseudovector",),
    "charge": ("pseudoscalar",),
}


#: Types that a name asks for, where nothing fits.
USUAL = {
    "energy": ("invariant",),
    "force": ("vector",),
    "dipole": ("vector",),
    "stress": ("voigt", "tensor"),
    "virial": ("voigt", "tensor"),
    "polarizab": ("tensor", "voigt"),
}


def told(name: str, text: str, options: Sequence[Output], value: Tensor, n: int) -> list[Output]:
    """The candidates that fit what the user said, such as "vector" or "vector per edge"."""
    kind, _, place = text.partition(" per ")
    kind = canonical(kind, name, "outputs", n)
    if place and place not in PLACES:
        raise ValueError(
            f"outputs: {name!r} is declared per {place!r}; choose ' per graph', ' per node', "
            "' per edge' or ' per pair'"
        )
    named = "tensor" if kind == "symmetric tensor" else kind
    named = "invariant" if parse_weight(kind) is not None else named
    fits = [o for o in options if o.type == named and o.basis is None and place in ("", o.place)]
    if parse_irreps(kind) is not None:
        fits = [o for o in _with_irreps(kind, options, value, n) if place in ("", o.place)]
    if not fits:
        can = ", ".join(dict.fromkeys(str(o) for o in options))
        raise ValueError(
            f"outputs: {name!r} cannot be {text!r} by its shape {list(value.shape)}, only {can}, "
            "or irreps"
        )
    return [replace(o, type=kind, known="told") for o in fits]


def _with_irreps(irreps: str, options: Sequence[Output], value: Tensor, n: int) -> Iterator[Output]:
    size = size_of(irreps, n)
    for plain in [o for o in options if o.type == "invariant"]:
        free = range(2 if plain.place == "pair" else int(plain.rows), value.dim())
        axes = [a for a in free if value.size(a) == size]
        axes = axes or [a for a in free if value.size(a) % size == 0][-1:]
        if size == 1:
            yield replace(plain, type=irreps, axes=())
            continue
        for axis in axes[-1:]:
            yield replace(plain, type=irreps, axes=(axis,))


def chosen_names(found: Sequence[str], outputs: Mapping[str, str] | str | None) -> dict[str, str]:
    """Each output to audit with what the user said of it, "" where nothing."""
    if outputs is None:
        return dict.fromkeys(found, "")
    if isinstance(outputs, str):
        if len(found) > 1:
            raise ValueError(f"outputs: there are {', '.join(found)}; pass a type for each by name")
        return {found[0]: outputs}
    for name in outputs:
        if name not in found:
            hint = suggestion(name, found, cutoff=0.4, listed=True)
            raise ValueError(f"outputs: the model gives no {name!r}; {hint}")
    return dict(outputs)


def ruled_out(option: Output) -> bool:
    """Whether the name of an output says that it cannot be of this type."""
    last = option.name.rpartition(".")[2].lower()
    return any(word in last and option.type in types for word, types in NEVER.items())


def _usual(option: Output) -> bool:
    last = option.name.rpartition(".")[2].lower()
    return any(word in last and option.type in types for word, types in USUAL.items())


#: An error of a type up to this is rounding, where a model holds constants in float32.
SINGLE = 1e-6


def choose(
    options: Sequence[Output], mismatch: Mapping[str, Sequence[float]], tolerance: float
) -> tuple[Output, float]:
    """The candidate that fits best, and its error under rotations.

    `mismatch` has an error for each candidate and each of "permutation", "rotation", "reflection"
    and "translation".
    """

    def best(left: list[int], kind: str) -> list[int]:
        errors = mismatch[kind]
        least = min(errors[k] for k in left)
        return [k for k in left if errors[k] <= max(4 * least, tolerance)]

    left = [
        k for k, option in enumerate(options) if option.known == "told" or not ruled_out(option)
    ]
    if len({option.place for option in options}) > 1:
        left = best(left, "permutation")
    if min(mismatch["rotation"][k] for k in left) > tolerance:
        left = [k for k in left if _usual(options[k])] or left
    left = best(left, "rotation")
    kept = [k for k in left if mismatch["translation"][k] <= tolerance]
    left = kept or sorted(left, key=lambda k: mismatch["translation"][k])[:1]
    if min(mismatch["reflection"][k] for k in left) <= max(tolerance, SINGLE):
        left = best(left, "reflection")
    index = left[0]
    found, error = options[index], mismatch["rotation"][index]
    several = len({o.type for o in options} - {"pseudoscalar"}) > 1
    unclear = error > 0.1 and several and found.known == "inferred"
    return (replace(found, known="unclear") if unclear else found), error
