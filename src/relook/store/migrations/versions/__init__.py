"""A file a version of the tables; `v1_log` is the first."""
