"""The claims of `symgnn bench atoms` by processor time of one thread, for a machine that is shared.

python benchmarks/atoms/times.py benchmarks/atoms/times.json   # needs schnetpack
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch

from symgnn.bench._atoms_suite import SUITE
from symgnn.bench._measure import Rounds
from symgnn.store import environment
from symgnn.train import keep_memory


def main(out: Path) -> None:
    """Measure what is not in the file yet, part by part."""
    torch.set_num_threads(1)
    keep_memory()
    rounds = Rounds(repeats=11, warm_up=2, seconds=60.0, clock=time.process_time)
    known = json.loads(out.read_text()) if out.exists() else {"claims": []}
    known["environment"] = environment()
    done = {claim["part"] for claim in known["claims"]}
    for part in SUITE.parts(False):
        if part.shape in done:
            continue
        for claim in part.run(rounds):
            row = {**claim.to_dict(), "part": part.shape}
            known["claims"].append(row)
            sys.stdout.write(f"{claim.shape}, {claim.what}: {claim.ratio.median:.2f}\n")
            sys.stdout.flush()
        out.write_text(json.dumps(known, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
