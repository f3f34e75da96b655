"""Options that many commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

CONFIG = Path("bursar.toml")
Data = Annotated[
    Path, typer.Option("-d", "--data", metavar="CONFIG", help="The config file of the data set.", show_default=True)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
