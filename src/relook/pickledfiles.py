"""Files that hold a pickle: dictionaries of Python's own and of torch's two forms, and the tensors of torch's models.

What is in them is read as data, by `relook.pickled`; nothing of it is run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED

import numpy as np
from numpy.typing import NDArray

from relook import npfiles
from relook.errors import BadInput
from relook.pickled import ELSEWHERE, MOST_BYTES, Asked, Name, begun, values

MOST_MODEL = 4 << 30
"""So many bytes the file of a model may have."""

_TORCH_MAGIC = 0x1950A86A20F9469CFC6C
_TORCH_PARTS = 4
_TENSOR, _PARAMETER = "torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_parameter"
_KINDS = {"Double": "<f8", "Float": "<f4", "Half": "<f2", "Long": "<i8", "Int": "<i4", "Byte": "u1", "Bool": "?"}
_STORAGES: Mapping[str, str] = {f"torch.{name}Storage": kind for name, kind in _KINDS.items()}
_KNOWN = frozenset({ELSEWHERE, _TENSOR, _PARAMETER, *_STORAGES})


def unpickled(path: Path) -> dict[str, Any]:
    """Return the dictionary that a pickle file holds, of torch or of Python itself, without running anything."""
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise BadInput(f"{path}: at most {MOST_BYTES:,} bytes were needed, but it has {size:,}; is it another file?")
    content = path.read_bytes()
    if content.startswith(b"PK"):
        found = values(_member(path), source=str(path))[0]
    else:
        every = values(content, source=str(path))
        of_torch = len(every) >= _TORCH_PARTS and every[0] == _TORCH_MAGIC
        found = every[_TORCH_PARTS - 1] if of_torch else every[0]
    if not isinstance(found, dict):
        raise BadInput(f"{path}: a dictionary was needed, but {type(found).__name__} came; is it another file?")
    return {key.decode("latin1") if isinstance(key, bytes) else str(key): value for key, value in found.items()}


def tensors(path: Path, *, sha256: str | None = None) -> dict[str, NDArray[Any]]:
    """Return the tensors that torch has saved of a model, by name, from either of its two forms; nothing of it is run.

    Where the file's SHA-256 is known, another file is refused.
    """
    if path.stat().st_size > MOST_MODEL:
        raise BadInput(f"{path}: a model of at most {MOST_MODEL >> 30} GiB was needed, but more came; is it another?")
    content = path.read_bytes()
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
        raise BadInput(f"{path}: the published weights were needed, but other bytes came; install the package again")
    with _reading(path, "a model that torch has saved"):
        stored, found = (_zipped if content.startswith(b"PK") else _in_a_row)(path, content)
        if not isinstance(found, dict) or not all(isinstance(value, Asked) for value in found.values()):
            raise BadInput(f"{path}: tensors by their names were needed, but something else came; save a state_dict")
        return {str(name): _tensor(asked, stored) for name, asked in found.items()}


def _member(path: Path) -> bytes:
    """Return the pickle in a zip archive of torch's."""
    with _reading(path), npfiles.archive(path) as archive:
        names = [part for part in archive.infolist() if part.filename.endswith("/data.pkl")]
        if len(names) != 1 or names[0].file_size > MOST_BYTES:
            raise BadInput(
                f"{path}: one data.pkl of at most {MOST_BYTES:,} bytes was needed, but {len(names)} came, or a "
                "larger one; save it again with torch.save"
            )
        with archive.open(names[0]) as file:
            return file.read(MOST_BYTES)


@contextmanager
def _reading(path: Path, what: str = "a sound data.pkl") -> Iterator[None]:
    try:
        yield
    except BadInput:
        raise
    except npfiles.BROKEN as error:
        raise BadInput(f"{path}: {what} was needed in it, but it is broken ({error}); get it again") from None


def _zipped(path: Path, _: bytes) -> tuple[Mapping[str, bytes], Any]:
    """Read the form that torch writes since 2020: a pickle, and the content of every tensor as an entry of its own."""
    found = begun(_member(path), source=str(path), known=_KNOWN, count=1)[0][0]
    stored: dict[str, bytes] = {}
    with _reading(path), npfiles.archive(path) as archive:
        for part in archive.infolist():
            folder, mark, key = part.filename.rpartition("/")
            # torch packs nothing, so what is read is no more than the file has.
            if mark and folder.endswith("/data") and part.compress_type == ZIP_STORED:
                stored[key] = archive.read(part)
    return stored, found


def _in_a_row(path: Path, content: bytes) -> tuple[Mapping[str, bytes], Any]:
    """Read the form that torch wrote until 2020: five pickles, then the content of every tensor behind its length."""
    parts, at = begun(content, source=str(path), known=_KNOWN, count=_TORCH_PARTS + 1)
    found, keys = parts[_TORCH_PARTS - 1 :]
    if parts[0] != _TORCH_MAGIC or type(keys) is not list:
        raise ValueError("another pickle came")
    kinds = dict(_kinds(found))
    stored: dict[str, bytes] = {}
    for key in keys:
        begin = at + 8
        at = begin + int.from_bytes(content[at:begin], "little") * kinds[key].itemsize
        stored[key] = content[begin:at]
    if at != len(content):
        raise ValueError(f"{at:,} bytes were announced, but {len(content):,} came")
    return stored, found


def _kinds(found: Any) -> list[tuple[str, np.dtype[Any]]]:
    asked = [value for value in found.values() if isinstance(value, Asked)] if isinstance(found, dict) else []
    return [_place(_plain(value).arguments[0]) for value in asked]


def _plain(asked: Asked) -> Asked:
    """Return how a tensor is put together, also where it was a parameter."""
    return asked.arguments[0] if asked.name == _PARAMETER else asked


def _place(asked: Any) -> tuple[str, np.dtype[Any]]:
    """Return the key and the kind of the content that a tensor looks at."""
    match asked:
        case Asked(name=name, arguments=("storage", Name(path=kind), str(key), *_)) if name == ELSEWHERE:
            return key, np.dtype(_STORAGES[kind])
    raise ValueError("its content is told in an unknown way")


def _tensor(asked: Asked, stored: Mapping[str, bytes]) -> NDArray[Any]:
    asked = _plain(asked)
    if asked.name != _TENSOR:
        raise ValueError("it is put together in an unknown way")
    key, kind = _place(asked.arguments[0])
    first, shape, strides = asked.arguments[1:4]
    values = np.frombuffer(stored[key], kind)
    last = first + sum((length - 1) * stride for length, stride in zip(shape, strides, strict=True))
    if min((first, *shape, *strides)) < 0 or (0 not in shape and last >= len(values)):
        raise ValueError("it looks beyond its content")
    steps = [stride * kind.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(values[first:], shape, steps, writeable=False)
