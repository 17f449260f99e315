"""`relook reproduce`."""


def reproduce() -> None:
    """(being written)."""
