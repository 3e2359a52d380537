"""Reads damaged files in a process of its own, with bounds on memory and processor time.

Called as `python read_damaged.py FOLDER FIRST COUNT`. Prints a line of JSON for each case before it
is read, so that the case is known if the process dies, and another one after.
"""

import json
import resource
import shutil
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from properties.damage import DAMAGES, Sample, hostile, samples, write, wrong_counts

#: For all files of a call; a file of some kilobytes takes milliseconds.
CPU_SECONDS = 600
#: Beyond what the process has when the libraries are there.
MEMORY = 1 << 31


def limit() -> None:
    """A hang ends the process; a huge allocation is a MemoryError."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    used = pages * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))


#: By turns: units as they are, units checked, edges of other kinds.
OPTIONS: list[dict] = [{"units": "angstrom"}, {}, {"radius": 2.0}, {"k": 3, "units": "bohr"}]


def outcome(path: Path, options: dict) -> str:
    """ "read", "refused", or what should not be."""
    from symgnn.data import read

    try:
        graphs = read(path, cell="drop", **options)
    except ValueError as error:
        text = str(error)
        beside = path.name.replace("nodes", "edges")
        # a fault of all graphs together names the option instead
        if path.name not in text and beside not in text and not text.startswith("columns: "):
            return f"does not name the file: {text[:300]}"
        if "\n" in text or len(text) > 600:
            return f"is not one short line: {text[:300]!r}"
        if "MemoryError" in text or "RecursionError" in text:
            return f"was tried first: {text[:300]}"
        return "refused"
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:300]}"
    if not graphs or not all(bool(graph.pos.isfinite().all()) for graph in graphs):
        return "has no graphs, or coordinates that are not finite"
    return "read"


def cases(first: int, count: int) -> Iterator[tuple[dict, Sample, bytes]]:
    """What every call has, then random damages: every sample by turns, every damage by turns."""
    fixed = [("hostile", hostile()), ("wrong count", wrong_counts())]
    for damage, files in fixed:
        for number, sample in enumerate(files):
            yield {"number": number, "damage": damage}, sample, sample.content
    known = list(samples().values())
    for number in range(first, first + count):
        sample = known[number % len(known)]
        name = list(DAMAGES)[(number // len(known)) % len(DAMAGES)]
        content = DAMAGES[name](sample.content, np.random.default_rng(number))
        yield {"number": number, "damage": name}, sample, content


def main(folder: Path, first: int, count: int) -> None:
    """Read good files, which imports all libraries; then, with less memory, the damaged ones."""
    for sample in samples().values():
        path = write(sample, sample.content, folder / "good" / sample.name)
        _say({"damage": "none", "file": sample.name, "outcome": outcome(path, OPTIONS[0])})
    limit()
    for case, sample, content in cases(first, count):
        case["file"] = sample.name
        _say(case)
        path = write(sample, content, folder / "damaged")
        _say({**case, "outcome": outcome(path, OPTIONS[case["number"] % len(OPTIONS)])})
        shutil.rmtree(folder / "damaged")


def _say(case: dict) -> None:
    sys.stdout.write(json.dumps(case) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
