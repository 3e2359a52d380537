"""Published mean absolute errors on QM9, in the units of the field.

All were compared with a transcript of the table.
"""

from __future__ import annotations

from symgnn.experiments._experiment import Peer

#: What the field has in place of a unit of the source: its name, and how many of it are one.
FIELD_UNITS = {"hartree": ("meV", 27_211.386)}
_TARGETS = ["alpha", "gap", "homo", "lumo", "mu", "cv", "g298", "h298", "r2", "u298", "u0", "zpve"]
_TABLE = "table 3 of Satorras, Hoogeboom and Welling 2021 (arXiv 2102.09844)"


def _peer(name: str, training: str, *errors: float) -> Peer:
    cells = {f"QM9 test MAE {target}": e for target, e in zip(_TARGETS, errors, strict=True)}
    return Peer(name, f"{_TABLE}, {training}, one network per target", cells)


#: All read all pairs of atoms within a cutoff or all pairs, not bonds, and predict energies less
#: those of the atoms.
QM9_PEERS = (
    _peer(
        "SchNet", "110,000 molecules", 0.235, 63, 41, 34, 0.033, 0.033, 14, 14, 0.073, 19, 14, 1.7
    ),
    _peer(
        "DimeNet++",
        "110,000 molecules, 3,000,000 steps of 32",
        *(0.044, 33, 25, 20, 0.030, 0.023, 8, 7, 0.331, 6, 6, 1.21),
    ),
    _peer(
        "EGNN",
        "100,000 molecules, 1,000 epochs",
        *(0.071, 48, 29, 25, 0.029, 0.031, 12, 12, 0.106, 12, 11, 1.55),
    ),
)
