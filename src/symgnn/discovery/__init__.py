"""Which symmetry data have: :func:`symgnn.discover`."""

from symgnn.discovery._discover import discover
from symgnn.discovery._discovery_report import DiscoveryReport
from symgnn.discovery._kind_verdicts import KindVerdict
from symgnn.discovery._told_apart import TurnFinding, told_apart

__all__ = ["DiscoveryReport", "KindVerdict", "TurnFinding", "discover", "told_apart"]
