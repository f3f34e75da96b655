"""`bursar serve`: let people in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bursar.cli.opened import CONFIG


def serve(
    places: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FOLDER|CONFIG", help="Data sets: configs, or folders with a bursar.toml.", show_default=False
        ),
    ] = None,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="For HTTP; 0 takes one that is free.")
    ] = 8000,
) -> None:
    """Let people in: serve data sets over HTTP to whoever has a token (bursar user add)."""
    from bursar.errors import Unsupported

    try:
        from bursar.service.run import serve as run
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.startswith("bursar"):
            raise
        raise Unsupported(
            f"the server needs {missing.name}\ntry: pip install '.[serve]' in a checkout of Bursar"
        ) from None
    run(places or [CONFIG], host=host, port=port)
