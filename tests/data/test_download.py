"""Downloads from servers that misbehave, on this machine; nobody waits: time is an argument."""

import hashlib
import http.server
import io
import itertools
import socket
import struct
import threading
import zipfile
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path

import numpy as np
import pytest

from symgnn.cli import main
from symgnn.data import _download as module
from symgnn.data import _tsp as tsp
from symgnn.data._dataset_store import Source, fetch
from symgnn.data._download import Limits

CONTENT = np.random.default_rng(0).bytes(300_000)
PORTAL = b"\n<!DOCTYPE html><html><body>Please log in to the network.</body></html>"
Answer = Callable[["Handler"], None]


class Server(http.server.ThreadingHTTPServer):
    """Gives one answer after the other, the last one again and again."""

    answers: list[Answer]

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[str | None] = []
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/file"

    def handle_error(self, *_: object) -> None:
        """A client that hangs up is what is tested."""


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        number = len(self.server.requests)
        self.server.requests.append(self.headers.get("Range"))
        self.server.answers[min(number, len(self.server.answers) - 1)](self)

    def start(self, status: int, **headers: object) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


# ---------------------------------------------------------------- answers


def whole(content: bytes = CONTENT, **headers: object) -> Answer:
    """All of it, or the range that is asked for."""

    def answer(handler: Handler) -> None:
        asked = handler.headers.get("Range")
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        more = (
            {"Content_Range": f"bytes {start}-{len(content) - 1}/{len(content)}"} if asked else {}
        )
        length = {"Content_Length": len(content) - start} | headers
        handler.start(206 if asked else 200, **length, **more)
        handler.wfile.write(content[start:])

    return answer


def status(code: int, **headers: object) -> Answer:
    return lambda handler: handler.start(code, Content_Length=0, **headers)


def stall(count: int) -> Answer:
    """Sends some bytes, then nothing, and keeps the connection."""

    def answer(handler: Handler) -> None:
        handler.start(200, Content_Length=len(CONTENT))
        handler.wfile.write(CONTENT[:count])
        handler.server.over.wait(60)

    return answer


def trickle(handler: Handler) -> None:
    """A few bytes at a time, without end."""
    handler.start(200, Content_Length=10**9)
    while not handler.server.over.wait(0):
        handler.wfile.write(b"x")


def endless(handler: Handler) -> None:
    """Without a length, and without an end."""
    handler.start(200)
    while not handler.server.over.wait(0):
        handler.wfile.write(CONTENT)


def reset(handler: Handler) -> None:
    """The connection is broken in the middle."""
    handler.start(200, Content_Length=len(CONTENT))
    handler.wfile.write(CONTENT[:1000])
    handler.wfile.flush()
    linger = struct.pack("ii", 1, 0)  # close with a reset
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    handler.connection.close()


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.over.set()
        running.shutdown()
        thread.join()


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def limits(waits: list[float]) -> Limits:
    return Limits(sleep=waits.append, timeout=0.2)


def source(url: str, **changes: object) -> Source:
    given = {"digest": f"md5:{hashlib.md5(CONTENT).hexdigest()}", "size": len(CONTENT)}
    return Source("things", "file.bin", (url,), **(given | changes))


def failure(server: Server, root: Path, limits: Limits, **changes: object) -> str:
    """In one line; nothing stays in the cache as the file."""
    with pytest.raises(OSError, match=r"^things: cannot get file.bin \(http") as error:
        fetch(source(server.url, **changes), root=root, limits=limits)
    assert "\n" not in str(error.value)
    assert not (root / "things" / "file.bin").exists()
    return str(error.value)


# ---------------------------------------------------------------- again


@pytest.mark.parametrize("code", [408, 425, 429, 500, 502, 503, 504])
def test_transient_answers_are_asked_again(
    code: int, server: Server, tmp_path: Path, limits: Limits, waits: list[float]
) -> None:
    server.answers = [status(code), status(code), whole()]
    path = fetch(source(server.url), root=tmp_path, limits=limits)
    assert path.read_bytes() == CONTENT
    assert waits == [1.0, 2.0]


def test_the_server_says_how_long_to_wait(
    server: Server, tmp_path: Path, limits: Limits, waits: list[float], monkeypatch
) -> None:
    monkeypatch.setattr(module.time, "time", lambda: 1e9)
    date = formatdate(1e9 + 40, usegmt=True)
    server.answers = [
        status(503, Retry_After=7),
        status(429, Retry_After=date),
        status(429, Retry_After="soon"),
        whole(),
    ]
    assert fetch(source(server.url), root=tmp_path, limits=limits).read_bytes() == CONTENT
    assert waits == [7.0, 40.0, 4.0]


def test_nobody_waits_for_hours(
    server: Server, tmp_path: Path, limits: Limits, waits: list[float]
) -> None:
    server.answers = [status(503, Retry_After=7200)]
    assert "503 Service Unavailable, and it asks to wait 7200 seconds" in failure(
        server, tmp_path, limits
    )
    assert (waits, len(server.requests)) == ([], 1)


def test_it_is_not_asked_for_ever(
    server: Server, tmp_path: Path, limits: Limits, waits: list[float]
) -> None:
    server.answers = [status(503)]
    assert "/file: 503 Service Unavailable). Put file.bin (md5" in failure(server, tmp_path, limits)
    assert len(server.requests) == 5
    assert waits == [1.0, 2.0, 4.0, 8.0]  # none after the last


@pytest.mark.parametrize("code", [400, 401, 403, 404, 410, 501])
def test_other_answers_are_final(
    code: int, server: Server, tmp_path: Path, limits: Limits, waits: list[float]
) -> None:
    server.answers = [status(code, Retry_After=1)]
    assert f"/file: {code} " in failure(server, tmp_path, limits)
    assert (waits, len(server.requests)) == ([], 1)


def test_a_broken_connection_is_taken_up_again(
    server: Server, tmp_path: Path, limits: Limits
) -> None:
    server.answers = [reset, whole()]
    assert fetch(source(server.url), root=tmp_path, limits=limits).read_bytes() == CONTENT
    assert len(server.requests) == 2


def test_progress_counts_as_success(
    server: Server, tmp_path: Path, limits: Limits, waits: list[float], monkeypatch
) -> None:
    """A connection that breaks after every megabyte brings all of them."""
    monkeypatch.setattr(module, "CHUNK", 10_000)

    def some(handler: Handler) -> None:
        asked = handler.headers.get("Range")
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        ranges = {"Content_Range": f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}"}
        handler.start(206, Content_Length=len(CONTENT) - start, **ranges)
        handler.wfile.write(CONTENT[start : start + 20_000])

    server.answers = [some]
    assert fetch(source(server.url), root=tmp_path, limits=limits).read_bytes() == CONTENT
    assert len(server.requests) == 15
    assert set(waits) == {1.0}


# ---------------------------------------------------------------- slow


def test_a_server_that_stalls_is_left(server: Server, tmp_path: Path, limits: Limits) -> None:
    """And taken up again where it stopped."""
    server.answers = [stall(1000), whole()]
    assert fetch(source(server.url), root=tmp_path, limits=limits).read_bytes() == CONTENT
    assert server.requests == [None, "bytes=1000-"]


def test_a_server_that_only_stalls(server: Server, tmp_path: Path, limits: Limits) -> None:
    server.answers = [stall(0)]
    assert "it did not answer in time" in failure(server, tmp_path, limits)
    assert len(server.requests) == 5


def test_a_server_that_trickles_is_left(server: Server, tmp_path: Path, waits: list[float]) -> None:
    """By a clock that runs a second at each look: less than 1000 bytes a second is too little."""
    ticks = itertools.count()
    slow = Limits(sleep=waits.append, clock=lambda: float(next(ticks)), slowest=1e9)
    server.answers = [trickle]
    message = failure(server, tmp_path, slow, size=10**9)
    assert "bytes in 30 seconds" in message
    assert len(server.requests) == 5


# ---------------------------------------------------------------- lengths


@pytest.mark.parametrize("length", ["abc", "-5", "1e3", "10, 10", "²"])
def test_a_length_that_is_no_number(
    length: str, server: Server, tmp_path: Path, limits: Limits, waits: list[float]
) -> None:
    server.answers = [whole(Content_Length=length)]
    message = failure(server, tmp_path, limits)
    assert "/file: its Content-Length is" in message
    assert "which is not a number)" in message
    assert (waits, len(server.requests)) == ([], 1)


def test_no_more_is_read_than_announced(server: Server, tmp_path: Path, limits: Limits) -> None:
    server.answers = [whole(CONTENT + b"more", Content_Length=len(CONTENT))]
    assert fetch(source(server.url), root=tmp_path, limits=limits).read_bytes() == CONTENT


@pytest.mark.parametrize("known", [{}, {"digest": ""}], ids=["digest", "size"])
def test_an_answer_that_is_too_long(
    known: dict, server: Server, tmp_path: Path, limits: Limits
) -> None:
    server.answers = [whole(Content_Length=10**15)]
    message = "it would send 1,000,000,000,000,000 bytes, and 300,000 are expected"
    assert message in failure(server, tmp_path, limits, **known)
    server.answers = [endless]
    message = "it sends more than the 300,000 bytes that are expected"
    assert message in failure(server, tmp_path, limits, **known)
    assert not list((tmp_path / "things").glob("*.part"))


def test_an_answer_without_end_of_a_file_of_unknown_size(server: Server, tmp_path: Path) -> None:
    server.answers = [endless]
    message = failure(server, tmp_path, Limits(largest=1_000_000), size=0)
    assert "it sends more than the 1,000,000 bytes that are expected" in message


def test_an_answer_that_is_too_short(server: Server, tmp_path: Path, limits: Limits) -> None:
    server.answers = [whole(CONTENT[:1000])]
    assert "has 1,000 bytes, not 300,000" in failure(server, tmp_path, limits, digest="")
    server.answers = [lambda handler: handler.start(200)]
    assert "it sent nothing" in failure(server, tmp_path, limits)


def test_redirects_in_a_circle(server: Server, tmp_path: Path, limits: Limits) -> None:
    server.answers = [status(302, Location="/file")]
    assert "infinite loop" in failure(server, tmp_path, limits)
    assert len(server.requests) < 20


def test_another_range_than_asked_for(server: Server, tmp_path: Path, limits: Limits) -> None:
    part = tmp_path / "things" / ".file.bin.part"
    part.parent.mkdir()
    part.write_bytes(CONTENT[:1000])
    odd = lambda handler: handler.start(206, Content_Length=5, Content_Range="bytes 7-11/12")  # noqa: E731
    server.answers = [odd, whole()]
    assert fetch(source(server.url), root=tmp_path, limits=limits).read_bytes() == CONTENT
    assert server.requests == ["bytes=1000-", None]


# ---------------------------------------------------------------- other files


@pytest.mark.parametrize(
    "known", [{}, {"digest": ""}, {"digest": "", "size": 0, "members": ("a.txt",)}]
)
def test_a_portal_is_not_kept(known: dict, server: Server, tmp_path: Path, limits: Limits) -> None:
    server.answers = [whole(PORTAL, Content_Type="text/html")]
    message = failure(server, tmp_path, limits, **known)
    assert "is a web page, perhaps of a portal or a login, and not file.bin (" in message
    assert len(server.requests) == 1


def archive(names: list[str], text: str = "0 0 1 0 0 1 1 1 output 1 2 4 3 1\n") -> bytes:
    with zipfile.ZipFile(content := io.BytesIO(), "w") as file:
        for name in names:
            file.writestr(name, text * 50)
    return content.getvalue()


@pytest.fixture
def tours(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The archive of the benchmark comes from the server; its content is smaller."""
    right = archive(list(tsp.ARCHIVE.members))
    known = {**vars(tsp.ARCHIVE), "urls": (server.url,), "size": len(right)}
    monkeypatch.setattr(tsp, "ARCHIVE", Source(**known))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "symgnn" / "tsp" / "TSP.zip"


def test_the_real_archive_is_described() -> None:
    """It has no digest: its size to a percent, and the three files that are read."""
    assert (tsp.ARCHIVE.size, tsp.ARCHIVE.rounded) == (64_700_000, True)
    assert tsp.ARCHIVE.members == tuple(f"TSP/{file.name}" for file in tsp.FILES.values())


def test_tours(server: Server, tours: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A portal is refused, and one that is in the cache already is replaced."""
    right = archive(list(tsp.ARCHIVE.members))
    server.answers = [whole(PORTAL)]
    assert main(["data", "get", "tsp"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("symgnn: tsp: cannot get TSP.zip (http://127.0.0.1:")
    assert "is a web page, perhaps of a portal" in said
    assert said.count("\n") == 1
    tours.write_bytes(PORTAL)  # as it was kept before
    server.answers = [whole(right)]
    assert main(["data", "get", "tsp"]) == 0
    assert tours.read_bytes() == right
    assert capsys.readouterr().out.split() == [str(tours)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (archive(list(tsp.ARCHIVE.members))[:-200], "has 5,132 bytes, not about 5,332"),
        (bytes(len(archive(list(tsp.ARCHIVE.members)))), "is not a whole zip file"),
        (archive(["TSP/tsp50-500_train.txt", "TSP/tsp50-500_val.txt", "TSP/other-500_test.txt"]),
         "has no TSP/tsp50-500_test.txt"),
        (archive(list(tsp.ARCHIVE.members)).replace(b" output 1 2", b" output 2 1", 7),
         "TSP/tsp50-500_train.txt in it is damaged"),
    ],
)  # fmt: skip
def test_other_archives_are_not_kept(
    content: bytes, message: str, server: Server, tours: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answers = [whole(content)]
    assert main(["data", "get", "tsp"]) == 2
    assert message in capsys.readouterr().err
    assert not tours.exists()
