"""Damaged files are read right or refused in one line, with bounded work and memory."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from properties.damage import COUNTS, hostile, samples, wrong_counts
from symgnn.data import read
from symgnn.data.files._formats import READERS, TABLES

HERE = Path(__file__).parent

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="needs limits of a process"
)


def check(folder: Path, first: int, count: int) -> Counter:
    """Read the cases in a process of their own; every case that is neither read nor refused."""
    call = [sys.executable, str(HERE / "read_damaged.py"), str(folder), str(first), str(count)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(call, capture_output=True, text=True, check=False, env=environment)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    ended = [row for row in rows if "outcome" in row]
    assert done.returncode == 0, f"died at {rows[-1:]}: {done.stderr[-1000:]}"
    wrong = [row for row in ended if row["outcome"] not in ("read", "refused")]
    wrong += [row for row in ended if row["damage"] == "none" and row["outcome"] != "read"]
    certain = ("hostile", "wrong count")
    wrong += [row for row in ended if row["damage"] in certain and row["outcome"] != "refused"]
    assert not wrong, "\n".join(map(str, wrong))
    assert not done.stderr  # libraries do not write what they think
    return Counter(row["damage"] for row in ended)


def test_every_format_has_a_sample() -> None:
    """All endings that are read, but for other names of the same format."""
    endings = {Path(name).suffix for name in samples()} | {".poscar", ".contcar"}
    assert endings == {*READERS, *TABLES}


def test_damaged_files(tmp_path: Path) -> None:
    """The hostile ones, all wrong counts, and three damages of each sample."""
    found = check(tmp_path, 60, 3 * len(samples()))
    assert found["hostile"] == len(list(hostile()))
    assert found["wrong count"] == len(list(wrong_counts())) == 6 * sum(map(len, COUNTS.values()))
    assert sum(found.values()) > 200


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_many_damaged_files(part: int, tmp_path: Path) -> None:
    """Every damage of every sample, two and a half times in each part."""
    found = check(tmp_path, 1_000_000 + 750 * part, 750)
    assert sum(found.values()) > 750


def test_a_header_of_24_bytes(tmp_path: Path) -> None:
    """It says how many atoms there are, and that it has to be replaced or corrected."""
    path = tmp_path / "a.xyz"
    path.write_bytes(b"999999999\n\nH 0.0 0.0 0.0"[:24])
    with pytest.raises(ValueError, match=r"a\.xyz, frame 0: is cut off, .*has 1 atoms, expected 9"):
        read(path)
