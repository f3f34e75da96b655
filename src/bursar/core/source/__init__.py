"""Databases that count rows by cells. `source.py` says what each of them promises; `duckdb.py` is the default."""
