"""`relook doctor`."""


def doctor() -> None:
    """(being written)."""
