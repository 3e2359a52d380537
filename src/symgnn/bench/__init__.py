"""Benchmarks of speed, memory and error at equal time, as ratios with bounds."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from symgnn._argument_checks import unknown_name

if TYPE_CHECKING:
    from symgnn.bench._suite import Suite

__all__ = ["SUITES", "USUAL", "check_name", "suite_named"]

#: The suites, in the order in which they are run; each is the `SUITE` of the module `_NAME_suite`.
SUITES = {
    "angles": "AGN's angle update against concatenate-MLP-scatter and its matrix products",
    "separable": "angles of product form against edges alone and AGN's MLP",
    "atoms": "energies with forces, and training on them, against energies alone",
    "blocks": "the blocks against each other, beside the paper's ratios",
    "peers": "DGN and AGN against EGNN, SchNet and DimeNet++; these as specifications",
    "topology": "making the topology, against a training step",
    "seeds": "ten initialisations trained at once, against one",
    "compile": "what torch.compile adds or costs",
    "scale": "one graph of up to a million nodes: time for each angle, and memory",
    "learning": "error on QM9 after the same processor time, ours and the peers' own code",
}
#: Those that are run where none is named; learning needs data, and an hour.
USUAL = tuple(name for name in SUITES if name != "learning")


def check_name(name: str) -> None:
    """Refuse the name of no suite, and name the nearest."""
    if name not in SUITES:
        raise ValueError(unknown_name("bench", name, SUITES, "known"))


def suite_named(name: str) -> Suite:
    """The suite with this name."""
    check_name(name)
    found: Suite = importlib.import_module(f"symgnn.bench._{name}_suite").SUITE
    return found
