"""The source files of datasets and the files prepared from them: search, download, check, cache.

Everything is written beside its place and renamed when whole, under a lock, so that a file is there
completely or not at all and two processes that want the same one wait for each other.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import os
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

import numpy as np
from filelock import FileLock

from symgnn.data._download import CHUNK, LIMITS, Limits, download
from symgnn.data._npz import load_npz
from symgnn.progress import OnProgress, bar

PathLike: TypeAlias = str | os.PathLike[str]
Arrays: TypeAlias = dict[str, np.ndarray]

#: Errors of reading a damaged zip file: also where it is encrypted, or packed in an unknown way.
BAD_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError)
_VERSION = "version"
_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True)
class Source:
    """A file that a dataset is made of."""

    folder: str  # of the dataset, in the cache
    name: str  # of the file, in the folder
    urls: tuple[str, ...] = ()  # tried in this order
    digest: str = ""  # "md5:..." or "sha256:..."; none where the publisher names none
    size: int = 0  # in bytes; 0 where it is not known
    rounded: bool = False  # the size is known to one percent only
    unpacked: bool = False  # the digest is that of what the .gz contains, however it was packed
    members: tuple[str, ...] = ()  # files that a zip archive has to have

    @property
    def checkable(self) -> bool:
        """Whether the content says if it is right."""
        return bool(self.digest or self.size or self.members)

    @property
    def names(self) -> tuple[str, ...]:
        """File names under which it may be found."""
        return (self.name, self.name.removesuffix(".gz")) if self.unpacked else (self.name,)

    def __str__(self) -> str:
        known = [self.digest.replace(":", " "), f"{self.size / 1e6:.1f} MB" if self.size else ""]
        return f"{self.name} ({', '.join(part for part in known if part)})"


def cache(root: PathLike | None = None) -> Path:
    """Where files are kept: `root`, or else `symgnn` in the user's cache directory."""
    if root is not None:
        return Path(root).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "symgnn"


def find(
    source: Source, *, root: PathLike | None = None, local: PathLike | None = None
) -> Path | None:
    """Where the file is, if anywhere: in SYMGNN_DATA, else in the cache.

    If `local`, a file or a folder, is given, only that is looked at.
    """
    if local is not None:
        given = Path(local).expanduser()
        if given.is_file():
            return given if given.name in source.names else None
        return _inside(given, source)
    folders = [os.environ.get("SYMGNN_DATA"), cache(root)]
    found = (_inside(Path(folder).expanduser(), source) for folder in folders if folder)
    return next((path for path in found if path is not None), None)


def _inside(folder: Path, source: Source) -> Path | None:
    places = (folder / source.folder / name for name in source.names)
    direct = (folder / name for name in source.names)
    return next((path for path in (*places, *direct) if path.is_file()), None)


def fetch(
    source: Source,
    *,
    root: PathLike | None = None,
    local: PathLike | None = None,
    progress: bool | None = None,
    limits: Limits = LIMITS,
) -> Path:
    """The path of the file, checked: found by :func:`find`, or else downloaded to the cache.

    A download that was interrupted goes on where it was, and `limits` says how long it is tried. A
    damaged file in the cache is fetched again; one that you gave is an error.
    """
    target = cache(root) / source.folder / source.name
    found = find(source, root=root, local=local)
    if found is None and local is not None:
        given = Path(local).expanduser()
        kind = "has no" if given.is_dir() else "is not" if given.exists() else "is not there; pass"
        raise ValueError(f"{local}: {kind} {source}")
    if found is not None:
        fault = wrong(source, found)
        if not fault:
            return found
        if found != target:
            raise ValueError(f"{found}: {fault}; it is damaged or another file, replace it")
    with locked(target):
        if not target.is_file() or wrong(source, target):
            with bar(f"downloading {source.name}", progress) as on_progress:
                _download(source, target, on_progress, limits)
    return target


def adopt(source: Source, path: Path, *, root: PathLike | None = None) -> Path:
    """Copy a file into the cache, if it is right."""
    fault = wrong(source, path)
    if fault:
        raise ValueError(f"{path}: {fault}; it is damaged or another file, replace it")
    target = cache(root) / source.folder / path.name
    if target.exists() and target.samefile(path):
        return target
    with locked(target), _room(target, path.stat().st_size):
        try:
            shutil.copyfile(path, _part(target))
            _part(target).replace(target)
        finally:
            _part(target).unlink(missing_ok=True)
    return target


def wrong(source: Source, path: Path, name: str = "", *, downloaded: bool = False) -> str:
    """The faults of the content of a file; empty if there are none.

    Args:
        source: what the file should be.
        path: where it is.
        name: its own name, if it has another for now.
        downloaded: whether it is as its publisher packed it, and all of it is to be read.
    """
    fault = _wrong_digest(source, path, name or path.name) if source.digest else ""
    if not source.digest and source.size and (downloaded or not source.members):
        fault = _wrong_size(source, path.stat().st_size)
    if not fault and source.members:
        fault = _wrong_zip(source, path, downloaded)
    if fault and _is_web_page(path):
        return f"is a web page, perhaps of a portal or a login, and not {source.name} ({fault})"
    return fault


def _wrong_digest(source: Source, path: Path, name: str) -> str:
    kind, _, expected = source.digest.partition(":")
    digest = hashlib.new(kind, usedforsecurity=False)
    packed = source.unpacked and name.endswith(".gz")
    try:
        with cast(BinaryIO, gzip.open(path)) if packed else path.open("rb") as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        return f"is not a whole gzip file ({error})"
    found = digest.hexdigest()
    return "" if found == expected else f"its {kind} is {found}, not {expected}"


def _wrong_size(source: Source, found: int) -> str:
    apart = source.size // 100 if source.rounded else 0
    if abs(found - source.size) <= apart:
        return ""
    return f"has {found:,} bytes, not {'about ' if source.rounded else ''}{source.size:,}"


def _wrong_zip(source: Source, path: Path, downloaded: bool) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            missing = [name for name in source.members if name not in archive.namelist()]
            if missing:
                return f"has no {missing[0]}"
            damaged = archive.testzip() if downloaded else None
            return f"{damaged} in it is damaged" if damaged else ""
    except BAD_ZIP as error:
        return f"is not a whole zip file ({error})"


def _is_web_page(path: Path) -> bool:
    with path.open("rb") as file:
        start = file.read(1024).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return start.startswith((b"<!doctype html", b"<html", b"<head"))


def _download(source: Source, target: Path, on_progress: OnProgress | None, limits: Limits) -> None:
    """Fetch the file from the first address that has it, whole and right."""
    part = _part(target)
    if (
        source.checkable
        and part.is_file()
        and not wrong(source, part, target.name, downloaded=True)
    ):
        part.replace(target)
        return
    with _room(target, source.size):
        failures = download(
            source.urls,
            part,
            size=source.size,
            wrong=lambda: wrong(source, part, target.name, downloaded=True),
            on_progress=on_progress,
            limits=limits,
        )
    if not failures:
        part.replace(target)
        return
    raise OSError(
        f"{source.folder}: cannot get {source.name} ({'; '.join(failures)}). Put {source} into "
        f"{target.parent}, or name the folder that has it with --from (source=) or SYMGNN_DATA"
    )


def prepared(path: Path, version: str, make: Callable[[], Arrays]) -> Arrays:
    """The arrays in the npz file `path`.

    They are made where it is not there, damaged or of another version. No object is unpickled.
    """
    found = _read(path, version)
    if found is not None:
        return found
    with locked(path):
        found = _read(path, version)  # another process may have made it
        if found is None:
            found = make()
            with _room(path, sum(array.nbytes for array in found.values())):
                save(path, found | {_VERSION: np.array(version)})
    return found


def save(path: Path, arrays: Arrays) -> None:
    """Write an npz file, whole or not at all."""
    part = _part(path)
    try:
        with part.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def read_arrays(path: Path) -> Arrays:
    """All arrays of an npz file; ValueError where it is none, or damaged."""
    try:
        return load_npz(path)
    except ValueError as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"{path}: cannot be read as npz ({reason}); replace it") from None


def _read(path: Path, version: str) -> Arrays | None:
    try:
        found = read_arrays(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return found if str(found.pop(_VERSION, "")) == version else None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Alone among all processes that work on this file; its folder is made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path.with_name(f".{path.name}.lock"))
        lock.acquire()
    except OSError as error:
        raise OSError(
            f"{path.parent}: cannot be written to ({error.strerror}); choose another with --root"
        ) from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _room(path: Path, size: int) -> Iterator[None]:
    """Report a full disk in one line, and remove the incomplete file to free its space."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        _part(path).unlink(missing_ok=True)
        needed = f", {size / 1e6:.1f} MB are needed" if size else ""
        raise OSError(
            f"{path}: the disk is full{needed}; make room or choose another folder with --root"
        ) from None


def _part(path: Path) -> Path:
    return path.with_name(f".{path.name}.part")
