"""`relook rank`."""


def rank() -> None:
    """(being written)."""
