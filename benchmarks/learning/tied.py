"""Whether the two rays of an angle need weights of their own: paired trials on QM9, MNIST and TSP.

    python benchmarks/learning/tied.py --data DIR --cache DIR --out tied.json

In product form `g_j h_k Q(cos theta_jik)`, g and h may be the same map (`tied=True`): half the
weights, half the moments. Protocol, fixed before the first run: data, networks, epochs and batches
as in `separable.py` beside it (two layers, 32 numbers everywhere), ten initialisations (seeds 10 to
19, which no other trial has); that with number k has the same seed and the same batches for all.

Rule: g and h become the same map by default if on each of the three datasets the mean of the ten
paired differences to maps of their own, both with 32 channels, is not worse than 0 by more than two
standard errors of them. The same with 24 channels is reported. It becomes the default only if it
passes the same rule, and if 32 channels miss the bound of speed (1.5 times DGN, `symgnn bench
separable`) on a shape where 24 reach it. Nothing else is tried.
"""

from __future__ import annotations

from channels import compare

NETWORKS = {
    "maps of their own": {"tied": False},
    "tied": {"tied": True},
    "tied, 24 channels": {"tied": True, "channels": 24},
}
SEEDS = range(10, 20)

if __name__ == "__main__":
    compare(__doc__, NETWORKS, SEEDS)
