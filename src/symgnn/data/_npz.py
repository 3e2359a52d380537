"""Arrays of an .npz file, checked before memory is allocated for them."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from symgnn.graphs.budget import require_memory


def load_npz(path: Path) -> dict[str, np.ndarray]:
    """All arrays of a file that `numpy.savez` wrote; Python objects in it are not unpickled.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is damaged, holds Python objects, or does not fit into memory.
    """
    try:
        with path.open("rb") as content:
            with zipfile.ZipFile(content) as archive:
                members = archive.infolist()
                for member in members:
                    with archive.open(member) as file:
                        _check_header(file, member)
            require_memory(
                "its arrays have {count} bytes",
                sum(member.file_size for member in members),
                1,
                "read it on a machine with more memory, or save fewer arrays",
            )
            content.seek(0)
            with np.load(content, allow_pickle=False) as arrays:
                return dict(arrays)
    except FileNotFoundError:
        raise
    except ValueError:
        raise
    except Exception as error:  # a damaged archive raises almost anything
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise ValueError(f"is damaged, or no .npz ({reason})") from None


def _check_header(file: IO[bytes], member: zipfile.ZipInfo) -> None:
    """The shape in the header of an array needs no more bytes than the array has."""
    version = npy.read_magic(file)
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"{member.filename}: has version {version} of the format, not (1, 0)")
    shape, _, dtype = readers[version](file)
    if dtype.hasobject:
        raise ValueError(f"{member.filename}: holds Python objects; save arrays of numbers")
    there = member.file_size - file.tell()
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize > there:
        raise ValueError(
            f"{member.filename}: its header says {shape} numbers of {dtype}, but it has "
            f"{there:,} bytes"
        )
