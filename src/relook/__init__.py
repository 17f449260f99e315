"""relook: spend a relabelling budget where it matters."""
__version__ = "0.1.0"
