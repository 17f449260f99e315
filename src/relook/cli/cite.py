"""`relook cite`."""


def cite() -> None:
    """(being written)."""
