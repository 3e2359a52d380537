"""Files that are written whole or not at all, and what a result was made with."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

import symgnn


def write_whole(path: Path, content: bytes) -> Path:
    """Write a file that is there completely or not at all, whenever the process is killed."""
    if path.is_dir():
        raise ValueError(f"{path}: is a folder; give the name of a file")
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # the content before the name
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def check_writable(path: Path) -> None:
    """Before anything is computed: the file can be written; the error points to `--out`."""
    folder = next(each for each in path.absolute().parents if each.exists())
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ValueError(
            f"--out: cannot write {path} ({error.strerror}); give a place that can be written, "
            "--out FILE"
        ) from None


def write_json(path: Path, value: Any) -> Path:
    """Write a value as JSON; numbers that are not finite become null."""
    text = json.dumps(finite(value), indent=1, allow_nan=False)
    return write_whole(path, text.encode("utf-8"))


def finite(value: Any) -> Any:
    """The value with null for every number that is not finite, which JSON does not have."""
    if isinstance(value, dict):
        return {key: finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def code() -> dict[str, str]:
    """Which code a part of a result was made with; a part of other code is made again."""
    return {"symgnn": symgnn.__version__, "commit": _commit()}


def read_json(path: Path) -> Any:
    """The content of a file; None where it is not there or damaged."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def environment() -> dict[str, str]:
    """The environment of a result: versions, machine and source."""
    packages = ("torch", "torch_geometric", "numpy", "scipy")
    versions = {name: metadata.version(name) for name in packages}
    return {
        "symgnn": symgnn.__version__,
        "commit": _commit(),
        "python": platform.python_version(),
        **versions,
        "platform": f"{sys.platform}, {platform.machine()}",
    }


def source_hash() -> str:
    """A name of the code that runs, with or without git: it changes with any of its modules."""
    here = Path(symgnn.__file__).parent
    sums = hashlib.sha256()
    for path in sorted(here.rglob("*.py")):
        sums.update(str(path.relative_to(here)).encode() + b"\0" + path.read_bytes() + b"\0")
    return sums.hexdigest()[:16]


def _commit() -> str:
    """The commit of the source that runs, where it is a checkout."""
    here = Path(symgnn.__file__).parent
    command = ["git", "-C", str(here), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
