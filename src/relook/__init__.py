"""Active label cleaning."""

__version__ = "0.1.0"
