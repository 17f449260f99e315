"""One process at a time: a lock beside a file, which ends with the process that holds it, however that ends."""

import os
import sys
from contextlib import suppress
from pathlib import Path

from relook.errors import Busy, NotStored

NETWORK = frozenset({"9p", "afs", "beegfs", "ceph", "cifs", "glusterfs", "lustre", "nfs", "nfs4", "smb3", "smbfs"})
"""File systems on which a lock, or what is written, may not hold for another machine. FUSE mounts are named apart."""

_FUSE = ("fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.rclone", "fuse.s3fs", "fuse.goofys")


class Lock:
    """A lock that one process holds; the file says which, and is never removed: only the system's lock counts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    def take(self) -> None:
        """Hold the lock, or say at once who does."""
        try:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise NotStored(
                f"{self.path.parent}: a folder that can be written to was needed, but: {error.strerror}; name another"
            ) from None
        try:
            _hold(file)
        except OSError:
            holder = os.pread(file, 200, 0).decode(errors="replace").strip() or "another process"
            os.close(file)
            raise Busy(
                f"{self.path.parent}: one program may write at a time, but {holder} does; end that one, or wait for it"
            ) from None
        # On a full disk nobody can be named; the lock holds all the same.
        with suppress(OSError):
            os.ftruncate(file, 0)
            os.pwrite(file, f"pid {os.getpid()} on {host()}\n".encode(), 0)
        self._file = file
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.leave)

    def leave(self) -> None:
        """Let go of it; a process that was forked off lets go of its copy, and the lock stays where it was."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)


def host() -> str:
    """Return the name of this machine."""
    import platform

    return platform.node() or "this machine"


def file_system(path: Path, mounts: str | None = None) -> str | None:
    r"""Return the kind of file system that a path lies on, as the system's table of mounts has it; None: it has none.

    >>> file_system(Path("/data/pets/log.db"), "1 0 8:1 / / rw - ext4 x rw\n2 1 0:9 / /data rw - nfs4 host:/x rw")
    'nfs4'
    """
    if mounts is None:
        try:
            mounts = Path("/proc/self/mountinfo").read_text("utf-8", "replace")
        except OSError:
            return None
    found, place = None, path.resolve()
    depth = -1
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        at = Path(before.split(" ")[4].replace("\\040", " "))
        if (at == place or at in place.parents) and len(at.parts) >= depth:
            found, depth = after.split(" ")[0], len(at.parts)
    return found


def is_shared(kind: str | None) -> bool:
    """Say whether a kind of file system is one that other machines may write to as well.

    >>> is_shared("nfs4"), is_shared("ext4"), is_shared(None)
    (True, False, False)
    """
    return kind is not None and (kind in NETWORK or kind.startswith(_FUSE))


def _hold(file: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        os.lseek(file, 1 << 30, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
