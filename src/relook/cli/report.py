"""`relook report`."""


def report() -> None:
    """(being written)."""
