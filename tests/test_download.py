"""Downloads: over https from known hosts, checked before they get their name, whole or not at all."""

import hashlib
import http.client
import io
import tarfile
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest

from relook.download import fetch, obtain, secure
from relook.errors import BadInput
from relook.published import File, Published

HOST = "raw.githubusercontent.com"
Answer = tuple[int, bytes, dict[str, str]]
Opener = Callable[[str], http.client.HTTPConnection]


class Publisher:
    """A server on this machine that stands in for the publishers; what it was asked for is in `asked`."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []
        publisher = self

        class Answering(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                publisher.asked.append(self.path)
                status, content, headers = publisher.answers.get(self.path, (404, b"", {}))
                self.send_response(status)
                for name, value in {"Content-Length": str(len(content)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Say nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Answering)
        self.hosts: list[str] = []

    def opener(self, host: str) -> http.client.HTTPConnection:
        self.hosts.append(host)
        return http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=5)


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    found = Publisher()
    thread = threading.Thread(target=found.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found
    found.server.shutdown()
    thread.join()
    found.server.server_close()


def file(content: bytes, name: str = "a.npy", **changes: Any) -> File:
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    made = File(name=name, page="example.org", url=f"https://{HOST}/{name}", digest=digest, most=len(content))
    return msgspec.structs.replace(made, **changes)


def published(*files: File) -> Published:
    return Published(name="pets", folder="pets", what="", licence="", citation="", bibtex="", files=files)


def left(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


class TestObtain:
    def test_whole_set(self, tmp_path: Path, publisher: Publisher) -> None:
        publisher.answers = {"/a.npy": (200, b"aaa", {}), "/b.csv": (200, b"bb" * 10**6, {})}
        by_hand = File(name="c.csv", page="example.org")
        steps: list[int] = []
        found = published(file(b"aaa"), file(b"bb" * 10**6, "b.csv"), by_hand)
        made = obtain(found, tmp_path, opener=publisher.opener, step=steps.append)
        assert made == [tmp_path / "pets" / "a.npy", tmp_path / "pets" / "b.csv"]
        assert made[0].read_bytes() == b"aaa"
        assert left(tmp_path) == ["pets", "pets/a.npy", "pets/b.csv"]
        assert sum(steps) == 3 + 2 * 10**6
        assert publisher.hosts == [HOST, HOST]

    def test_what_is_there_is_kept(self, tmp_path: Path, publisher: Publisher) -> None:
        publisher.answers = {"/a.npy": (200, b"aaa", {}), "/b.csv": (200, b"b", {})}
        found = published(file(b"aaa"), file(b"b", "b.csv"))
        (tmp_path / "pets").mkdir()
        (tmp_path / "pets" / "a.npy").write_bytes(b"aaa")
        assert obtain(found, tmp_path, opener=publisher.opener) == [tmp_path / "pets" / "b.csv"]
        assert obtain(found, tmp_path, opener=publisher.opener) == []
        assert publisher.asked == ["/b.csv"]
        (tmp_path / "pets" / "a.npy").write_bytes(b"other")
        with pytest.raises(
            BadInput, match=r"the publisher's file was needed \(sha256 \w+\), but another is there; move"
        ):
            obtain(found, tmp_path, opener=publisher.opener)

    def test_all_or_nothing(self, tmp_path: Path, publisher: Publisher) -> None:
        publisher.answers = {"/a.npy": (200, b"aaa", {}), "/b.csv": (200, b"spoilt", {})}
        with pytest.raises(
            BadInput, match=r"the sha256 sum \w+ was needed, but 6 bytes of \w+ came; try again, or get"
        ):
            obtain(published(file(b"aaa"), file(b"sound!", "b.csv")), tmp_path, opener=publisher.opener)
        assert left(tmp_path) == []

    def test_archive(self, tmp_path: Path, publisher: Publisher) -> None:
        content = archive({"x/a.bin": b"a", "x/more.bin": b"m", "../../out.bin": b"evil", "x/b.bin": b"b"})
        publisher.answers = {"/a.tar.gz": (200, content, {})}
        found = published(file(content, "a.tar.gz", holds=("x/a.bin", "x/b.bin")))
        obtain(found, tmp_path, opener=publisher.opener)
        assert left(tmp_path) == ["pets", "pets/x", "pets/x/a.bin", "pets/x/b.bin"]
        assert obtain(found, tmp_path, opener=publisher.opener) == []

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"no archive", r"an archive was needed, but it is broken \("),
            (b"", "an archive was needed, but it is broken"),
        ],
    )
    def test_no_archive(self, tmp_path: Path, publisher: Publisher, content: bytes, message: str) -> None:
        publisher.answers = {"/a.tar.gz": (200, content, {})}
        with pytest.raises(BadInput, match=message):
            obtain(published(file(content, "a.tar.gz", holds=("x",))), tmp_path, opener=publisher.opener)
        assert left(tmp_path) == []

    def test_archive_without_a_file_or_with_a_link(self, tmp_path: Path, publisher: Publisher) -> None:
        for content in (archive({"y": b""}), archive({}, link="x")):
            publisher.answers = {"/a.tar.gz": (200, content, {})}
            with pytest.raises(
                BadInput, match=r"x was needed in the archive, but it is not there; get a\.tar\.gz from"
            ):
                obtain(published(file(content, "a.tar.gz", holds=("x",))), tmp_path, opener=publisher.opener)
            assert left(tmp_path) == []

    def test_no_folder(self, tmp_path: Path) -> None:
        with pytest.raises(
            BadInput, match="a folder of data sets was needed, but it is not there; make it, or name an"
        ):
            obtain(published(), tmp_path / "nowhere")


def archive(files: dict[str, bytes], *, link: str | None = None) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as made:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            made.addfile(member, io.BytesIO(content))
        if link is not None:
            member = tarfile.TarInfo(link)
            member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
            made.addfile(member)
    return stream.getvalue()


class TestFetch:
    def fetched(self, publisher: Publisher, to: Path, *answers: tuple[str, Answer], **changes: str) -> None:
        publisher.answers = dict(answers)
        fetch(file(b"aaa", **changes), to, opener=publisher.opener)

    def test_moved_within_the_hosts(self, tmp_path: Path, publisher: Publisher) -> None:
        moved = ("/a.npy", (302, b"", {"Location": "https://zenodo.org/b.npy?x=1"}))
        self.fetched(publisher, tmp_path / "a", moved, ("/b.npy?x=1", (200, b"aaa", {})))
        assert publisher.hosts == [HOST, "zenodo.org"]
        assert (tmp_path / "a").read_bytes() == b"aaa"

    @pytest.mark.parametrize(
        "place",
        ["http://zenodo.org/a", "https://example.org/a", "file:///etc/passwd", "https://zenodo.org:8080/a", "//evil/a"],
    )
    def test_moved_elsewhere(self, tmp_path: Path, publisher: Publisher, place: str) -> None:
        with pytest.raises(
            BadInput, match=r"an address with https at .+ was needed, but the file is elsewhere; get it"
        ):
            self.fetched(publisher, tmp_path / "a", ("/a.npy", (301, b"", {"Location": place})))
        assert publisher.hosts == [HOST], "nothing else was connected to"
        assert left(tmp_path) == []

    def test_moved_without_end(self, tmp_path: Path, publisher: Publisher) -> None:
        with pytest.raises(BadInput, match="a file was needed, but it moved 5 times; get it by hand"):
            self.fetched(publisher, tmp_path / "a", ("/a.npy", (302, b"", {"Location": "/a.npy"})))

    def test_too_long(self, tmp_path: Path, publisher: Publisher) -> None:
        with pytest.raises(BadInput, match=r"at most 3 bytes were needed, but more came; get a\.npy from"):
            self.fetched(publisher, tmp_path / "a", ("/a.npy", (200, b"aaa" * 10**6, {})))
        assert left(tmp_path) == []

    def test_cut_short(self, tmp_path: Path, publisher: Publisher) -> None:
        with pytest.raises(
            BadInput, match=r"an answer was needed, but none came \(IncompleteRead|sum \w+ was needed, but"
        ):
            self.fetched(publisher, tmp_path / "a", ("/a.npy", (200, b"aa", {"Content-Length": "3"})))
        assert left(tmp_path) == []

    def test_not_there(self, tmp_path: Path, publisher: Publisher) -> None:
        with pytest.raises(BadInput, match="a file was needed, but the server said 404; get it by hand"):
            self.fetched(publisher, tmp_path / "a")

    def test_no_network(self, tmp_path: Path) -> None:
        def nobody(host: str) -> http.client.HTTPConnection:
            return http.client.HTTPConnection("127.0.0.1", 1, timeout=1)

        with pytest.raises(BadInput, match=r"an answer was needed, but none came \(ConnectionRefusedError.+is there a"):
            fetch(file(b"aaa"), tmp_path / "a", opener=nobody)
        assert left(tmp_path) == []

    def test_other_sums(self, tmp_path: Path, publisher: Publisher) -> None:
        self.fetched(
            publisher, tmp_path / "a", ("/a.npy", (200, b"aaa", {})), digest="md5:47bce5c74f589f4867dbd57e9ca9f808"
        )
        with pytest.raises(BadInput, match="the md5 sum 0 was needed, but 3 bytes of 47bce5c74f589f48"):
            self.fetched(publisher, tmp_path / "b", ("/a.npy", (200, b"aaa", {})), digest="md5:0")


def test_connections_are_secure() -> None:
    import ssl

    connection = secure("zenodo.org")
    assert isinstance(connection, http.client.HTTPSConnection)
    context = connection._context  # type: ignore[attr-defined]
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
