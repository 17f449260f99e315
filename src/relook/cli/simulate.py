"""`relook simulate`."""


def simulate() -> None:
    """(being written)."""
