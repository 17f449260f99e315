"""What relook raises.

    RelookError
    ├── BadInput (ValueError)         something handed in cannot be what it claims to be
    ├── BadLog (ValueError)           a campaign's log contradicts itself or its data
    ├── NotAllowed (RuntimeError)     the campaign's rules forbid this now
    └── MissingExtra (ImportError)    a part that was not installed is needed

Every message reads `where: what was needed, but what came, what to do`.
"""


class RelookError(Exception):
    """Anything that relook raises on purpose."""


class BadInput(RelookError, ValueError):
    """Something handed in cannot be what it claims to be."""


class BadLog(RelookError, ValueError):
    """A campaign's log contradicts itself or the data it is replayed on."""


class NotAllowed(RelookError, RuntimeError):
    """The rules of the campaign forbid what was asked."""


class MissingExtra(RelookError, ImportError):
    """A part of relook that was not installed is needed."""
