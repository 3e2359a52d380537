"""Which symmetry data have: :func:`symgnn.discover`."""

from symgnn.discovery._discover import discover
from symgnn.discovery._discovery_report import DiscoveryReport, KindVerdict

__all__ = ["DiscoveryReport", "KindVerdict", "discover"]
