"""Checkpoints: written whole or not at all, and read without running anything that is in them."""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from symgnn.store import write_whole

KIND = "symgnn checkpoint"
VERSION = 2
#: Stands at the end of the file, before the SHA-256 of all that is before it; torch reads over it.
MARK = b"\nsymgnn sha256 "
TAIL = len(MARK) + 64 + 1


def write_checkpoint(path: Path, content: dict[str, Any]) -> Path:
    """Write tensors, numbers and texts, and the digest of the file at its end."""
    buffer = io.BytesIO()
    torch.save({"kind": KIND, "version": VERSION, **content}, buffer)
    return write_whole(path, with_digest(buffer.getvalue()))


def with_digest(content: bytes) -> bytes:
    """The content of a file, and its digest."""
    return content + MARK + hashlib.sha256(content).hexdigest().encode() + b"\n"


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read a file of :func:`write_checkpoint`, on the CPU; other files are refused in one line.

    Nothing is loaded of a file whose digest does not fit: a single bit that was flipped is noticed.
    """
    if not path.exists():
        raise ValueError(f"{path}: is not there; give the directory of a run that was trained")
    fix = "restore it from a copy, or train again into another --out"
    try:
        whole = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror}); {fix}") from None
    if whole[-TAIL:][: len(MARK)] != MARK:
        raise ValueError(
            f"{path}: is damaged, as it does not end with its checksum, or is no checkpoint "
            f"of this symgnn; {fix}"
        )
    if with_digest(whole[:-TAIL]) != whole:
        raise ValueError(f"{path}: is damaged, as its checksum does not fit; {fix}")
    try:
        content = torch.load(io.BytesIO(whole), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise ValueError(
            f"{path}: holds more than weights, and was not loaded; give a checkpoint that "
            "symgnn train wrote"
        ) from None
    except Exception:  # what is no archive of torch raises almost anything
        raise ValueError(f"{path}: is no checkpoint; {fix}") from None
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise ValueError(f"{path}: was not written by symgnn train; give a checkpoint that was")
    if content.get("version") != VERSION:
        raise ValueError(
            f"{path}: has version {content.get('version')}, this symgnn reads {VERSION}; "
            "use the symgnn that wrote it"
        )
    if not isinstance(content.get("members"), list):
        raise ValueError(f"{path}: has no weights; restore it, or train again")
    return content


@contextmanager
def fitting(path: Path) -> Iterator[None]:
    """Say in one line that the weights of a file are not those of the model."""
    try:
        yield
    except (RuntimeError, KeyError, IndexError, AttributeError, TypeError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        said = (lines[1] if len(lines) > 1 else lines[0]).rstrip(".")[:120] if lines else ""
        raise ValueError(
            f"{path}: does not fit the model of config.yaml ({said}); it is of another run, or "
            "config.yaml was changed: put back what was there"
        ) from None
