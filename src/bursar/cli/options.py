"""Options that many commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

CONFIG = Path("bursar.toml")
ANALYST = "BURSAR_ANALYST"
"""Names who asks where --as does not."""

Data = Annotated[
    Path,
    typer.Option(
        "-d",
        "--data",
        metavar="CONFIG",
        envvar="BURSAR_CONFIG",
        help="The config file of the data set.",
        show_default=True,
    ),
]
Analyst = Annotated[str, typer.Option("--as", metavar="NAME", envvar=ANALYST, help="Who asks; written into the log.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
