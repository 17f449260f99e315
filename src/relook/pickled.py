"""Arrays and text out of pickle files that some publishers use, read without running anything in them.

A pickle is a program. What is understood here is the part of its language that builds dictionaries, lists, numbers,
text and arrays of numbers; anything else is refused where it stands.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from functools import partial
from math import prod
from typing import Any, Literal, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from relook import npfiles
from relook.errors import BadInput

MOST_BYTES, MOST_STEPS, MOST_AXES = 64 * 2**20, 1_000_000, 8
"""What a file may cost: bytes, steps of its program, and axes of an array. CIFAR-10's own need half of that."""

_MOST_VALUES = 8
_NAME_BYTES = 128
_SAFE_KIND = re.compile(r"[|<>=]?(?:[iu][1248]|f[248]|b1)")


class Name(msgspec.Struct, frozen=True):
    """A function or a type that a file names; it is looked up in a list, never imported."""

    path: str


class Asked(msgspec.Struct, frozen=True):
    """What a file asks for by a name that its reader knows; the reader sees what to make of it, nothing is called."""

    name: str
    arguments: tuple[Any, ...]


ELSEWHERE = "elsewhere"
"""The name by which a file asks for content that lies beside its pickle."""


class _Unbuilt:
    """An array or a kind of number whose content follows; `places` are where the file has noted it."""

    __slots__ = ("kind", "places")

    def __init__(self, kind: np.dtype[Any] | None = None) -> None:
        self.kind = kind
        self.places: list[int] = []


class _Machine:
    """A file half read: where it stands, and what it has put on its stack and noted so far."""

    __slots__ = ("at", "content", "known", "marks", "memo", "source", "spent", "stack", "steps")

    def __init__(self, content: bytes, source: str, *, known: frozenset[str] = frozenset()) -> None:
        self.content, self.source, self.at, self.steps, self.spent = content, source, 0, 0, 0
        self.known = known
        self.empty()

    def empty(self) -> None:
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def taken(self, count: int) -> bytes:
        """Return the next bytes of the file."""
        if not 0 <= count <= len(self.content) - self.at:
            raise self.refused(f"{count:,} more bytes were announced than the file has")
        self.at += count
        return self.content[self.at - count : self.at]

    def number(self, kind: str) -> Any:
        return struct.unpack(kind, self.taken(struct.calcsize(kind)))[0]

    def last(self, count: int | None) -> list[Any]:
        """Take so many values from the stack, or all that came since the last mark."""
        first = self.marks.pop() if count is None else len(self.stack) - count
        if first < 0:
            raise self.refused("it asks for more values than came")
        items = self.stack[first:]
        del self.stack[first:]
        return items

    def refused(self, what: str) -> BadInput:
        return BadInput(
            f"{self.source}, byte {self.at:,}: plain numbers, text and arrays were needed, but {what}; "
            "nothing of it was run; get the file from its publisher"
        )


def values(content: bytes, *, source: str = "pickle") -> list[Any]:
    r"""Return what a pickle holds, and the pickles right behind it: numbers, text, bytes, arrays, lists, dictionaries.

    >>> values(b"}U\1aK\7s.")
    [{b'a': 7}]
    """
    machine = _Machine(content, source)
    found: list[Any] = []
    while not found or machine.at < len(content):
        if len(found) == _MOST_VALUES:
            raise machine.refused(f"more than {_MOST_VALUES} pickles came in a row")
        found.append(_value(machine))
    return found


def begun(content: bytes, *, source: str, known: frozenset[str], count: int) -> tuple[list[Any], int]:
    """Return the first pickles of a file and where they end; what they call by a known name is `Asked`."""
    machine = _Machine(content, source, known=known)
    return [_value(machine) for _ in range(count)], machine.at


def _value(machine: _Machine) -> Any:
    """Follow one pickle to its end."""
    machine.empty()
    try:
        while True:
            code = machine.taken(1)
            if code == b".":
                break
            machine.steps += 1
            if machine.steps > MOST_STEPS:
                raise machine.refused(f"it takes more than {MOST_STEPS:,} steps")
            if code not in _STEPS:
                raise machine.refused(f"a step that such files do not take came (code {code[0]:#04x})")
            _STEPS[code](machine)
        (found,) = machine.stack
        _check_plain(found, machine)
    except BadInput:
        raise
    except npfiles.BROKEN as error:
        raise machine.refused(f"it is broken ({type(error).__name__})") from None
    return found


def _check_plain(found: Any, machine: _Machine) -> None:
    """Refuse a result that holds anything but plain data, in time that its length bounds."""
    left, seen = [found], set()
    while left:
        value = left.pop()
        if isinstance(value, dict | list | tuple):
            if id(value) not in seen:
                seen.add(id(value))
                left += value.values() if isinstance(value, dict) else value
        elif isinstance(value, Asked):
            left += value.arguments
        elif isinstance(value, Name) and value.path in machine.known:
            continue
        elif not isinstance(value, int | float | str | bytes | np.ndarray | None):
            raise machine.refused("the name of a function, or half an array, came as data")


# The steps, each of which does one thing to the stack.


def _push(machine: _Machine, *, value: Any) -> None:
    machine.stack.append(value)


def _push_new(machine: _Machine, *, make: Callable[[], Any]) -> None:
    machine.stack.append(make())


def _push_number(machine: _Machine, *, kind: str) -> None:
    machine.stack.append(machine.number(kind))


def _push_long(machine: _Machine) -> None:
    machine.stack.append(int.from_bytes(machine.taken(machine.number("<B")), "little", signed=True))


def _push_text(machine: _Machine, *, kind: str) -> None:
    machine.stack.append(machine.taken(machine.number(kind)).decode("utf-8", "surrogatepass"))


def _push_bytes(machine: _Machine, *, kind: str) -> None:
    machine.stack.append(machine.taken(machine.number(kind)))


def _mark(machine: _Machine) -> None:
    machine.marks.append(len(machine.stack))


def _tuple(machine: _Machine, *, count: int | None = None) -> None:
    machine.stack.append(tuple(machine.last(count)))


def _extend(machine: _Machine, *, count: int | None = None) -> None:
    items = machine.last(count)
    if type(machine.stack[-1]) is not list:
        raise machine.refused("something was appended to what is no list")
    machine.stack[-1].extend(items)


def _fill(machine: _Machine, *, count: int | None = None) -> None:
    pairs = machine.last(count)
    if type(machine.stack[-1]) is not dict or any(type(key) not in (str, bytes, int) for key in pairs[::2]):
        raise machine.refused("an entry came for what is no dictionary, or under no name")
    machine.stack[-1].update(zip(pairs[::2], pairs[1::2], strict=True))


def _put(machine: _Machine, *, kind: str) -> None:
    _note(machine, machine.number(kind))


def _memoize(machine: _Machine) -> None:
    _note(machine, len(machine.memo))


def _note(machine: _Machine, place: int) -> None:
    value = machine.stack[-1]
    machine.memo[place] = value
    if isinstance(value, _Unbuilt):
        value.places.append(place)


def _recall(machine: _Machine, *, kind: str) -> None:
    machine.stack.append(machine.memo[machine.number(kind)])


def _global(machine: _Machine) -> None:
    lines = machine.content[machine.at : machine.at + _NAME_BYTES].split(b"\n", 2)
    if len(lines) < 3:
        raise machine.refused("a name without an end came")
    machine.at += len(lines[0]) + len(lines[1]) + 2
    _named(machine, f"{lines[0].decode('latin1')}.{lines[1].decode('latin1')}")


def _stack_global(machine: _Machine) -> None:
    name = machine.stack.pop()
    _named(machine, f"{machine.stack.pop()}.{name}")


def _named(machine: _Machine, path: str) -> None:
    known = path.replace("numpy._core.", "numpy.core.", 1)
    if known not in _CALLS and known != _ARRAY and known not in machine.known:
        raise machine.refused(f"it asks for {path[:_NAME_BYTES]!r}")
    machine.stack.append(Name(known))


def _reduce(machine: _Machine) -> None:
    arguments, called = machine.stack.pop(), machine.stack.pop()
    if not isinstance(called, Name) or called.path == _ARRAY or type(arguments) is not tuple:
        raise machine.refused("a call came of what cannot be called")
    call = _CALLS.get(called.path)
    machine.stack.append(Asked(called.path, arguments) if call is None else call(machine, arguments))


def _elsewhere(machine: _Machine) -> None:
    place = machine.stack.pop()
    if ELSEWHERE not in machine.known or type(place) is not tuple:
        raise machine.refused("it keeps content in another place")
    machine.stack.append(Asked(ELSEWHERE, place))


def _build(machine: _Machine) -> None:
    state, unbuilt = machine.stack.pop(), machine.stack.pop()
    if machine.known and type(unbuilt) is dict and type(state) is dict:
        machine.stack.append(unbuilt)  # what torch notes about a model is not in it
        return
    if not isinstance(unbuilt, _Unbuilt) or type(state) is not tuple:
        raise machine.refused("content came for what holds none")
    built = _array(machine, *state[-4:]) if unbuilt.kind is None else _ordered(machine, unbuilt.kind, state=state)
    for place in unbuilt.places:
        machine.memo[place] = built
    machine.stack.append(built)


# What a file may call: the functions that numpy's arrays are put together with.


def _begun(machine: _Machine, arguments: tuple[Any, ...]) -> _Unbuilt:
    if not isinstance(arguments[0], Name) or arguments[0].path != _ARRAY:
        raise machine.refused("an array of an unknown type came")
    return _Unbuilt()


def _kind(machine: _Machine, arguments: tuple[Any, ...]) -> _Unbuilt:
    name = arguments[0].decode("latin1") if isinstance(arguments[0], bytes) else arguments[0]
    if not isinstance(name, str) or not _SAFE_KIND.fullmatch(name):
        raise machine.refused(f"an array of {str(name)[:20]!r} came, which are no plain numbers")
    return _Unbuilt(np.dtype(name))


def _encoded(machine: _Machine, arguments: tuple[Any, ...]) -> bytes:
    text, encoding = arguments
    if type(text) is not str or type(encoding) is not str or encoding != "latin1":
        raise machine.refused("text in another encoding than latin1 came")
    machine.spent += len(text)
    if machine.spent > MOST_BYTES:
        raise machine.refused(f"it makes more than {MOST_BYTES:,} bytes")
    return text.encode("latin1")


def _empty(machine: _Machine, arguments: tuple[Any, ...], *, kind: Callable[[], Any]) -> Any:
    if arguments:
        raise machine.refused("bytes were to be made of something")
    return kind()


def _from_buffer(machine: _Machine, arguments: tuple[Any, ...]) -> NDArray[Any]:
    raw, kind, shape, order = arguments
    return _array(machine, shape, kind, str(order) == "F", raw)


def _ordered(machine: _Machine, kind: np.dtype[Any], *, state: tuple[Any, ...]) -> np.dtype[Any]:
    order = state[1].decode("latin1") if isinstance(state[1], bytes) else state[1]
    if not isinstance(order, str) or order not in ("<", ">", "=", "|") or any(part is not None for part in state[2:5]):
        raise machine.refused("numbers with parts came, which are no plain ones")
    return kind.newbyteorder(cast("Literal['<', '>', '=', '|']", order))


def _array(machine: _Machine, *parts: Any) -> NDArray[Any]:
    """Return an array of a shape, kind, order and bytes that agree with each other."""
    shape, kind, by_columns, raw = parts
    if not isinstance(kind, np.dtype) or type(raw) is not bytes or type(shape) is not tuple:
        raise machine.refused("an array that is none of numbers came")
    if len(shape) > MOST_AXES or any(type(length) is not int or length < 0 for length in shape):
        raise machine.refused("an array of an impossible shape came")
    if prod(shape) * kind.itemsize != len(raw):
        raise machine.refused(f"an array of shape {shape} came with {len(raw):,} bytes")
    flat = np.frombuffer(raw, kind)
    return flat.reshape(shape, order="F" if by_columns else "C")


_ARRAY = "numpy.ndarray"

_CALLS: Mapping[str, Callable[[_Machine, tuple[Any, ...]], Any]] = {
    "numpy.core.multiarray._reconstruct": _begun,
    "numpy.core.numeric._frombuffer": _from_buffer,
    "numpy.dtype": _kind,
    "_codecs.encode": _encoded,
    "__builtin__.bytes": partial(_empty, kind=bytes),
    "collections.OrderedDict": partial(_empty, kind=dict),
}

_Step = Callable[[_Machine], None]

_STEPS: Mapping[bytes, _Step] = {
    b"\x80": lambda machine: cast("None", machine.taken(1)),  # the version of the language
    b"\x95": lambda machine: cast("None", machine.taken(8)),  # a frame's length, which nothing depends on
    b"N": partial(_push, value=None),
    b"\x88": partial(_push, value=True),
    b"\x89": partial(_push, value=False),
    b"}": partial(_push_new, make=dict),
    b"]": partial(_push_new, make=list),
    b")": partial(_push_new, make=tuple),
    **{code: partial(_push_number, kind=kind) for code, kind in ((b"J", "<i"), (b"K", "<B"), (b"M", "<H"))},
    b"G": partial(_push_number, kind=">d"),
    b"\x8a": _push_long,
    **{code: partial(_push_text, kind=kind) for code, kind in ((b"X", "<I"), (b"\x8c", "<B"), (b"\x8d", "<Q"))},
    **{code: partial(_push_bytes, kind=kind) for code, kind in ((b"B", "<I"), (b"C", "<B"), (b"\x8e", "<Q"))},
    **{code: partial(_push_bytes, kind=kind) for code, kind in ((b"T", "<i"), (b"U", "<B"), (b"\x96", "<Q"))},
    b"(": _mark,
    b"t": _tuple,
    **{code: partial(_tuple, count=count) for count, code in enumerate((b"\x85", b"\x86", b"\x87"), 1)},
    b"a": partial(_extend, count=1),
    b"e": _extend,
    b"s": partial(_fill, count=2),
    b"u": _fill,
    b"q": partial(_put, kind="<B"),
    b"r": partial(_put, kind="<I"),
    b"\x94": _memoize,
    b"h": partial(_recall, kind="<B"),
    b"j": partial(_recall, kind="<I"),
    b"c": _global,
    b"\x93": _stack_global,
    b"R": _reduce,
    b"Q": _elsewhere,
    b"b": _build,
}
"""What each code of the language does; a code that is not here is refused."""
