"""Downloads over HTTP: repeated where that can help, resumed where they ended, always bounded."""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from symgnn.progress import OnProgress

CHUNK = 1 << 20
#: Answers of a server that may be another one a little later.
TRANSIENT = (408, 425, 429, 500, 502, 503, 504)


@dataclass(frozen=True)
class Limits:
    """How long a download is tried.

    An address is given up after `attempts` failures in a row, none of which brought a megabyte.
    Between them are `backoff`, 2 `backoff`, 4 `backoff`, ... seconds, or as many as the server asks
    for (Retry-After), at most `longest_wait`. An answer has to bring at least `slowest` bytes a
    second, measured over every `timeout` seconds.
    """

    attempts: int = 5
    backoff: float = 1.0
    longest_wait: float = 60.0
    timeout: float = 30.0
    slowest: float = 1000.0
    largest: int = 1 << 34  # bytes, of a file whose size is not known
    sleep: Callable[[float], Any] = time.sleep
    clock: Callable[[], float] = time.monotonic


LIMITS = Limits()


class DownloadError(Exception):
    """Why an address did not send the file; `again` where another attempt may help."""

    def __init__(self, reason: object, *, again: bool = False, wait: float | None = None) -> None:
        super().__init__(" ".join(str(reason).split())[:200])
        self.again, self.wait = again, wait


def download(
    urls: Sequence[str],
    part: Path,
    *,
    size: int = 0,
    wrong: Callable[[], str],
    on_progress: OnProgress | None = None,
    limits: Limits = LIMITS,
) -> list[str]:
    """Write the file of the first address that has it, whole and right, to `part`.

    Args:
        urls: addresses, tried in this order.
        part: where to write; what is there is taken for the first part of the file.
        size: about how many bytes the file has; 0 if that is not known.
        wrong: what is wrong with the content of `part`, once it is whole; "" if nothing is.
        on_progress: is told how many bytes of how many are there.
        limits: how long to try.

    Returns:
        Nothing if the file is there; otherwise a line for each failure.
    """
    failures: list[str] = []
    for url in urls:
        failed = 0
        while failed < limits.attempts:
            before = part.stat().st_size if part.exists() else 0
            try:
                _receive(url, part, size, on_progress, limits)
                fault = wrong()
                if not fault:
                    return []
                part.unlink()
                # a part of another file was there: try once more without it
                raise DownloadError(fault, again=bool(before), wait=0.0)
            except DownloadError as failure:
                failures.append(f"{url}: {failure}")
                if not failure.again:
                    break
                after = part.stat().st_size if part.exists() else 0
                failed = 0 if after >= before + CHUNK else failed + 1
                if failed < limits.attempts:
                    _wait(failure.wait, failed, limits)
    return list(dict.fromkeys(failures)) or ["no address is known"]


def _wait(asked: float | None, failed: int, limits: Limits) -> None:
    wait = limits.backoff * 2 ** max(failed - 1, 0) if asked is None else asked
    if wait > 0:
        limits.sleep(min(wait, limits.longest_wait))


def _receive(
    url: str, part: Path, size: int, on_progress: OnProgress | None, limits: Limits
) -> None:
    """Write what an address sends into `part`, from where it ends if the server can."""
    have = part.stat().st_size if part.exists() else 0
    most = size + size // 10 if size else limits.largest
    with _open(url, part, have, limits) as response:
        if response.status != 206:
            have = 0
        total = _total(response, have)
        if total is not None and total > most:
            raise DownloadError(f"it would send {total:,} bytes, and {size or most:,} are expected")
        with part.open("ab" if have else "wb") as file:
            for chunk in _chunks(response, limits):
                have += len(chunk)
                if have > most:
                    break
                file.write(chunk)
                if on_progress is not None and (total or size):
                    on_progress(have, total or size)
    if have > most:
        part.unlink()
        raise DownloadError(f"it sends more than the {size or most:,} bytes that are expected")
    if total is not None and have != total:
        raise DownloadError(f"it ended after {have} of {total} bytes", again=True)
    if not have:
        raise DownloadError("it sent nothing", again=True)


def _open(url: str, part: Path, have: int, limits: Limits) -> Any:
    """The answer of the server, which begins at byte `have` (status 206) or at the first."""
    headers = {"User-Agent": "symgnn"} | ({"Range": f"bytes={have}-"} if have else {})
    try:
        response = urlopen(Request(url, headers=headers), timeout=limits.timeout)
    except HTTPError as error:
        error.close()
        if error.code == 416 and have:  # what is here is longer than what is there
            part.unlink()
            raise DownloadError(
                "416, it has less than what is here", again=True, wait=0.0
            ) from None
        wait = _retry_after(error.headers.get("Retry-After"))
        reason = f"{error.code} {error.reason}"
        if wait is not None and wait > limits.longest_wait:
            raise DownloadError(f"{reason}, and it asks to wait {wait:.0f} seconds") from None
        raise DownloadError(reason, again=error.code in TRANSIENT, wait=wait) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _failure(error) from None
    if response.status == 206:
        sent = response.headers.get("Content-Range", "")
        if not sent.startswith(f"bytes {have}-"):
            response.close()
            part.unlink(missing_ok=True)
            raise DownloadError("it sent another range than asked for", again=True, wait=0.0)
    return response


def _failure(error: Exception) -> DownloadError:
    """A broken connection may hold the next time; an unknown host or certificate will not do."""
    reason = error.reason if isinstance(error, URLError) else error
    hopeless = (ConnectionRefusedError, socket.gaierror, ssl.SSLCertVerificationError, ValueError)
    again = not isinstance(reason, (*hopeless, str))
    if isinstance(reason, TimeoutError):
        return DownloadError("it did not answer in time", again=again)
    return DownloadError(str(reason) or type(reason).__name__, again=again)


def _total(response: Any, have: int) -> int | None:
    """How many bytes the file has, as the server says; None if it does not."""
    length = response.headers.get("Content-Length")
    if length is None:
        return None
    if not (length.isascii() and length.isdigit()):
        raise DownloadError(f"its Content-Length is {length!r}, which is not a number")
    return have + int(length)


def _chunks(response: Any, limits: Limits) -> Iterator[bytes]:
    """The bytes of the server, as long as they come fast enough."""
    since, received = limits.clock(), 0
    while True:
        try:
            chunk = response.read1(CHUNK)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise _failure(error) from None
        if not chunk:
            return
        yield chunk
        received += len(chunk)
        passed = limits.clock() - since
        if passed >= limits.timeout:
            if received < limits.slowest * passed:
                raise DownloadError(f"it sent {received} bytes in {passed:.0f} seconds", again=True)
            since, received = limits.clock(), 0


def _retry_after(text: str | None) -> float | None:
    """Seconds, from a number of seconds or a date."""
    if text is None:
        return None
    if text.strip().isdigit():
        return float(text)
    try:
        return max(parsedate_to_datetime(text).timestamp() - time.time(), 0.0)
    except (ValueError, TypeError, OverflowError):
        return None
