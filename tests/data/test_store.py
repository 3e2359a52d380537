"""Files of datasets: found, downloaded, checked, kept."""

import gzip
import hashlib
import http.server
import multiprocessing
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from symgnn.data import _dataset_store as dataset_store
from symgnn.data._dataset_store import Source, fetch, find, prepared
from symgnn.data._download import Limits

CONTENT = np.random.default_rng(0).bytes(300_000)


class Server(http.server.ThreadingHTTPServer):
    """Serves `content`; `cut` bytes of each answer at most, with ranges or without."""

    content = CONTENT
    cut: int | None = None
    ranges = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/file"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.server.requests.append(asked)
        content, start = self.server.content, 0
        if asked and self.server.ranges:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            if start >= len(content):
                self.send_error(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        body = content[start:]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: self.server.cut])

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def no_other_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SYMGNN_DATA", raising=False)


def source(url: str = "", content: bytes = CONTENT, **more: object) -> Source:
    digest = f"md5:{hashlib.md5(content).hexdigest()}"
    urls = (url,) if url else ()
    return Source("things", "file.bin", urls, digest, len(content), **more)


def files(root: Path) -> set[str]:
    """All files but the locks, which stay empty."""
    return {path.name for path in root.rglob("*") if path.is_file() and path.suffix != ".lock"}


# ---------------------------------------------------------------- finding


def test_where_files_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is passed wins over the environment, and that over the cache."""
    places = [tmp_path / name / "things" / "file.bin" for name in ("cache", "variable", "given")]
    assert find(source(), root=tmp_path / "cache") is None
    for path in places:
        path.parent.mkdir(parents=True)
        path.write_bytes(CONTENT)
    assert find(source(), root=tmp_path / "cache") == places[0]
    monkeypatch.setenv("SYMGNN_DATA", str(tmp_path / "variable"))
    assert fetch(source(), root=tmp_path / "cache") == places[1]
    for local in (tmp_path / "given", tmp_path / "given" / "things", places[2]):
        assert fetch(source(), root=tmp_path / "cache", local=local) == places[2]


def test_the_cache_is_where_the_user_keeps_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert dataset_store.cache() == Path("/somewhere/symgnn")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert dataset_store.cache() == Path.home() / ".cache" / "symgnn"


def test_what_was_given_has_to_be_there_and_right(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"nowhere: is not there; pass file.bin \(md5 .*MB\)"):
        fetch(source(), root=tmp_path, local=tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r": has no file.bin \(md5"):
        fetch(source(), root=tmp_path, local=tmp_path)
    (tmp_path / "file.bin").write_bytes(b"something else")
    with pytest.raises(ValueError, match=r"its md5 is .*, not .*; it is damaged or another file"):
        fetch(source(), root=tmp_path / "cache", local=tmp_path)


def test_content_packed_in_another_way(tmp_path: Path) -> None:
    """The digest of an unpacked source is that of its content, packed or not."""
    packed = Source("things", "file.gz", (), source().digest, unpacked=True)
    (tmp_path / "file.gz").write_bytes(gzip.compress(CONTENT, compresslevel=1))
    assert fetch(packed, local=tmp_path).name == "file.gz"
    (tmp_path / "file.gz").write_bytes(gzip.compress(CONTENT)[:-100])
    with pytest.raises(ValueError, match="is not a whole gzip file"):
        fetch(packed, local=tmp_path)
    (tmp_path / "file.gz").unlink()
    (tmp_path / "file").write_bytes(CONTENT)
    assert fetch(packed, local=tmp_path).name == "file"


# ---------------------------------------------------------------- downloading


def test_download(server: Server, tmp_path: Path) -> None:
    path = fetch(source(server.url), root=tmp_path)
    assert path == tmp_path / "things" / "file.bin"
    assert path.read_bytes() == CONTENT
    assert fetch(source(server.url), root=tmp_path) == path
    assert server.requests == [None]
    path.write_bytes(b"damaged")
    assert fetch(source(server.url), root=tmp_path).read_bytes() == CONTENT
    assert files(tmp_path) == {"file.bin"}


def test_wrong_checksum(server: Server, tmp_path: Path) -> None:
    server.content = b"x" + CONTENT[1:]
    with pytest.raises(OSError, match=r"^things: cannot get file.bin \(http.*its md5 is .*Put"):
        fetch(source(server.url), root=tmp_path)
    assert files(tmp_path) == set()
    assert len(server.requests) == 1


def test_truncated_is_asked_for_the_rest(server: Server, tmp_path: Path) -> None:
    server.cut = 120_000
    found = fetch(source(server.url), root=tmp_path, limits=Limits(backoff=0))
    assert found.read_bytes() == CONTENT
    assert server.requests == [None, "bytes=120000-", "bytes=240000-"]


def test_interrupted_then_resumed(server: Server, tmp_path: Path) -> None:
    server.cut = 1000
    with pytest.raises(OSError, match="it ended after 3000 of 300000 bytes"):
        fetch(source(server.url), root=tmp_path, limits=Limits(attempts=3, backoff=0))
    assert files(tmp_path) == {".file.bin.part"}
    server.cut = None
    assert fetch(source(server.url), root=tmp_path).read_bytes() == CONTENT
    assert server.requests[-1] == "bytes=3000-"


def test_server_without_ranges(server: Server, tmp_path: Path) -> None:
    server.ranges = False
    (tmp_path / "things").mkdir()
    (tmp_path / "things" / ".file.bin.part").write_bytes(CONTENT[:1000])
    assert fetch(source(server.url), root=tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("part", [b"other" * 1000, b"other" * 100_000, CONTENT])
def test_resuming_a_part_of_something_else(server: Server, tmp_path: Path, part: bytes) -> None:
    (tmp_path / "things").mkdir()
    (tmp_path / "things" / ".file.bin.part").write_bytes(part)
    assert fetch(source(server.url), root=tmp_path).read_bytes() == CONTENT
    assert len(server.requests) == (0 if part == CONTENT else 2)
    assert files(tmp_path) == {"file.bin"}


def test_the_next_address(server: Server, tmp_path: Path) -> None:
    """One that refuses connections, then one that has the file."""
    two = Source("things", "file.bin", ("http://127.0.0.1:9/file", server.url), source().digest)
    assert fetch(two, root=tmp_path).read_bytes() == CONTENT


def test_no_network(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"^things: cannot get file.bin .*refused") as error:
        fetch(source("http://127.0.0.1:9/file"), root=tmp_path)
    text = str(error.value)
    assert f"Put {source()} into {tmp_path / 'things'}, or name" in text
    assert "\n" not in text
    with pytest.raises(OSError, match="no address is known"):
        fetch(source(), root=tmp_path)


@pytest.fixture
def full() -> Path:
    """A file that takes nothing: every write fails as on a full disk."""
    device = Path("/dev/full")
    if not device.exists():
        pytest.skip("this system has no /dev/full")
    return device


def test_full_disk(server: Server, tmp_path: Path, full: Path) -> None:
    (tmp_path / "things").mkdir()
    (tmp_path / "things" / ".file.bin.part").symlink_to(full)
    with pytest.raises(OSError, match=r"the disk is full, 0.3 MB are needed; make room or choose"):
        fetch(source(server.url), root=tmp_path)
    assert files(tmp_path) == set()
    assert fetch(source(server.url), root=tmp_path).read_bytes() == CONTENT


def test_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"file/things: cannot be written to \(.*; choose another"):
        fetch(source("http://127.0.0.1:9/file"), root=tmp_path / "file")


# ---------------------------------------------------------------- what is made


def make() -> dict[str, np.ndarray]:
    return {"a": np.arange(1000), "names": np.array(["x", "y"])}


def never() -> dict[str, np.ndarray]:
    raise AssertionError("made again")


def test_made_once(tmp_path: Path) -> None:
    path = tmp_path / "new" / "things.npz"
    for function in (make, never):
        found = prepared(path, "1", function)
        assert sorted(found) == ["a", "names"]
        assert (found["a"] == np.arange(1000)).all()
    assert (prepared(path, "2", lambda: {"a": np.zeros(1)})["a"] == 0).all()
    assert prepared(path, "2", never)["a"].shape == (1,)
    assert files(tmp_path) == {"things.npz"}


def damages() -> dict[str, object]:
    return {
        "empty": lambda content: b"",
        "truncated": lambda content: content[:4000],
        "a changed byte": lambda content: content[:3000] + b"\xff" + content[3001:],
        "no npz": lambda content: b"text" * 100,
    }


@pytest.mark.parametrize("damage", damages().values(), ids=damages())
def test_damaged_is_made_again(tmp_path: Path, damage: object) -> None:
    path = tmp_path / "things.npz"
    prepared(path, "1", make)
    path.write_bytes(damage(path.read_bytes()))
    assert (prepared(path, "1", make)["a"] == np.arange(1000)).all()
    prepared(path, "1", never)


def test_objects_are_not_unpickled(tmp_path: Path) -> None:
    path = tmp_path / "things.npz"
    np.savez(path, a=np.array([{"any": "object"}], dtype=object), version=np.array("1"))
    assert sorted(prepared(path, "1", make)) == ["a", "names"]


def test_failure_leaves_nothing(tmp_path: Path, full: Path) -> None:
    path = tmp_path / "things.npz"
    with pytest.raises(AssertionError, match="made again"):
        prepared(path, "1", never)
    (tmp_path / ".things.npz.part").symlink_to(full)
    with pytest.raises(OSError, match=r"things.npz: the disk is full, 0.0 MB are needed"):
        prepared(path, "1", make)
    assert files(tmp_path) == set()


# ---------------------------------------------------------------- two processes


def noted(log: str) -> dict[str, np.ndarray]:
    with open(log, "a") as file:  # noqa: PTH123
        file.write("made\n")
    return make()


def prepare_in_process(path: str, log: str, begin: object) -> None:
    begin.wait()
    assert len(prepared(Path(path), "1", lambda: noted(log))["a"]) == 1000


def fetch_in_process(root: str, url: str, begin: object) -> None:
    begin.wait()
    assert fetch(source(url), root=root).read_bytes() == CONTENT


def run_two(target: object, *arguments: str) -> None:
    context = multiprocessing.get_context("fork")
    begin = context.Barrier(2)  # both reach the lock together
    both = [context.Process(target=target, args=(*arguments, begin)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join(60)
    assert [process.exitcode for process in both] == [0, 0]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # nothing of torch is used there
def test_two_processes_make_it_once(tmp_path: Path) -> None:
    run_two(prepare_in_process, str(tmp_path / "things.npz"), str(tmp_path / "log"))
    assert (tmp_path / "log").read_text() == "made\n"
    assert files(tmp_path) == {"things.npz", "log"}


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_two_processes_download_it_once(server: Server, tmp_path: Path) -> None:
    run_two(fetch_in_process, str(tmp_path), server.url)
    assert server.requests == [None]
    assert files(tmp_path) == {"file.bin"}
