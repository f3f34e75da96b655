"""Any bytes as a config file: a Config, or a ConfigError that names the file."""

from __future__ import annotations

import tempfile
from pathlib import Path

import atheris
from target import fuzz

with atheris.instrument_imports(include=["bursar.config", "tomllib"]):
    from bursar.config import load
    from bursar.errors import ConfigError

from fuzz.seeds import TOML

FOLDER = tempfile.TemporaryDirectory()
FILE = Path(FOLDER.name) / "people.toml"


def read(data: bytes) -> None:
    FILE.write_bytes(data)
    try:
        load(FILE)
    except ConfigError as refusal:
        if refusal.file != str(FILE) or not refusal.reason or not 0 <= refusal.line <= data.count(b"\n") + 1:
            raise AssertionError("a refusal that helps nobody") from refusal


if __name__ == "__main__":
    fuzz(read, seeds=TOML.values())
