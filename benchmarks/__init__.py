"""Benchmarks: programs, not tests. `python -m benchmarks.NAME --quick` prints a table and ends with one JSON line."""
