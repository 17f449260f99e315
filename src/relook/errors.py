"""What relook raises.

    RelookError
    ├── BadInput (ValueError)         something handed in cannot be what it claims to be
    ├── BadLog (ValueError)           a campaign's log contradicts itself or its data
    ├── NotAllowed (RuntimeError)     the campaign's rules forbid this now
    ├── BadTraining (RuntimeError)    a model was trained in vain: what came of it must not rank
    ├── NotStored (OSError)           what was asked could not be written down for good
    ├── Busy (RuntimeError)           somebody else is at it, or too many are
    └── MissingExtra (ImportError)    a part that was not installed is needed

Every message reads `where: what was needed, but what came, what to do`, in one line that fits on a screen, whatever a
file has put into it.
"""

LONGEST = 1_000
"""A message has so many characters; what is too much is cut out of its middle."""


class RelookError(Exception):
    """Anything that relook raises on purpose."""

    def __init__(self, message: object = "") -> None:
        super().__init__(_one_line(str(message)))


class BadInput(RelookError, ValueError):
    """Something handed in cannot be what it claims to be."""


class BadLog(RelookError, ValueError):
    """A campaign's log contradicts itself or the data it is replayed on."""


class NotAllowed(RelookError, RuntimeError):
    """The rules of the campaign forbid what was asked."""


class BadTraining(RelookError, RuntimeError):
    """A model was trained in vain: what came of it must not rank."""


class NotStored(RelookError, OSError):
    """What was asked could not be written down for good, so it did not happen."""


class Busy(RelookError, RuntimeError):
    """Another process has the campaign open, or more is asked than can be done; try again later."""


class MissingExtra(RelookError, ImportError):
    """A part of relook that was not installed is needed."""


def _one_line(message: str) -> str:
    if len(message) > LONGEST:
        message = f"{message[: LONGEST * 2 // 3]} ... {message[-LONGEST // 4 :]}"
    if message.isprintable():
        return message
    return "".join(mark if mark.isprintable() else mark.encode("unicode_escape").decode() for mark in message)
