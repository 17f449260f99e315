"""Names for items and patients that only the holder of a site's key can lead back: HMAC-SHA-256, never a plain hash.

A plain hash of a short number is undone by trying all numbers. Random names would be safe too, but a second import
could not find them again.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
from pathlib import Path

from relook.errors import BadInput

KEY_BYTES = 32


class SiteKey:
    """The secret of a site; it shows itself by its mark only.

    >>> key = SiteKey(bytes(32))
    >>> key, key.pseudonym("patient", "4711")
    (SiteKey(88d0b861), '8a67b640a10e8438105e95b065079d39')
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes) -> None:
        if len(secret) < KEY_BYTES:
            raise BadInput(
                f"site key: at least {KEY_BYTES} bytes were needed, but {len(secret)} came; remove the file, "
                "and a new one is made"
            )
        self._secret = secret

    def __repr__(self) -> str:
        return f"SiteKey({self.mark})"

    @property
    def mark(self) -> str:
        """Eight letters by which two imports tell whether they used one key; they say nothing about it."""
        return self.pseudonym("mark")[:8]

    @property
    def hex(self) -> str:
        """The secret itself, for a process that works with it."""
        return self._secret.hex()

    def pseudonym(self, kind: str, *parts: str) -> str:
        """Return the name of something of a kind, 128 bits as hexadecimal digits."""
        # Every part goes in with its length, so that no two lists of parts read alike.
        told = b"".join(
            b"%d:%b" % (len(part), part) for part in (text.encode("utf-8", "surrogatepass") for text in (kind, *parts))
        )
        return hmac.new(self._secret, told, hashlib.sha256).hexdigest()[:32]


def default_place() -> Path:
    """Return where a site's key lies when nobody names a place."""
    return Path.home() / ".config" / "relook" / "site.key"


def site_key(place: Path | None = None) -> SiteKey:
    """Return the key that lies in a file, and make one where there is none; nobody but its owner may read it."""
    path = default_place() if place is None else place
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        made = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except OSError as error:
        if path.exists():
            return _read(path)
        raise BadInput(
            f"{path}: a place for the site's key was needed, but it cannot be made ({error.strerror}); name another"
        ) from None
    with os.fdopen(made, "w") as file:
        file.write(os.urandom(KEY_BYTES).hex() + "\n")
    return _read(path)


def _read(path: Path) -> SiteKey:
    if not path.is_file():
        raise BadInput(f"{path}: a file with the site's key was needed, but this is a folder; name a file in it")
    mode = stat.S_IMODE(path.stat().st_mode)
    if os.name == "posix" and mode & 0o077:
        raise BadInput(
            f"{path}: a key that only its owner reads was needed, but its mode is {mode:o}; chmod 600, and think "
            "about who has read it"
        )
    try:
        return SiteKey(bytes.fromhex(path.read_text("ascii")))
    except (ValueError, OSError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(
            f"{path}: a site's key was needed, hexadecimal digits, but it is none; name another file"
        ) from None
