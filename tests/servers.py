"""A PostgreSQL server of one's own, in a folder that is thrown away: started, restarted, and stopped by the tests."""

import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Cluster:
    """A server that listens on a socket in its folder."""

    def __init__(self, folder: Path, programs: Path, port: int) -> None:
        self.folder, self._programs, self.port = folder, programs, port

    def control(self, *words: str) -> None:
        """Run pg_ctl, as somebody who is not root."""
        log = self.folder / "log"
        command = [str(self._programs / "pg_ctl"), "-D", str(self.folder / "files"), "-l", str(log), "-w", "-s", *words]
        ended = subprocess.run([*_nobody(), *command], cwd=self.folder, check=False, stdout=subprocess.DEVNULL)
        assert ended.returncode == 0, log.read_text() if log.exists() else "no log"

    def start(self) -> None:
        self.control("start", "-o", f"-k {self.folder} -p {self.port} -c listen_addresses=''")

    def restart(self, mode: str = "immediate") -> None:
        """End every connection and start again, as after a crash."""
        self.control("restart", "-m", mode, "-o", f"-k {self.folder} -p {self.port} -c listen_addresses=''")

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://relook@/{database}?host={self.folder}&port={self.port}"

    def new_database(self) -> str:
        """Make an empty database and return its URL."""
        import psycopg

        name = f"db_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self.url(name)


def programs() -> Path | None:
    """Return where PostgreSQL's programs are: beside those on the path, or where Debian puts them."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which("initdb")
    return next(
        (place for place in [*([Path(found).parent] if found else []), *places] if (place / "initdb").exists()), None
    )


@contextmanager
def cluster(place: Path) -> Iterator[Cluster]:
    """Make a server, and stop it at the end."""
    folder = Path(tempfile.mkdtemp(prefix="relook-"))
    made = Cluster(folder, place, _free_port())
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
        initdb = [
            str(place / "initdb"),
            "-D",
            str(folder / "files"),
            "-U",
            "relook",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-sync",
        ]
        subprocess.run([*_nobody(), *initdb], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        made.start()
        try:
            yield made
        finally:
            made.control("stop", "-m", "immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _nobody() -> list[str]:
    """Return how to run a program as the user of the server, which refuses to be root's."""
    return ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
