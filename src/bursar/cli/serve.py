"""`bursar serve`: let people in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bursar.cli.opened import CONFIG

if TYPE_CHECKING:
    from bursar.service.openid import OpenIdSettings

DEMO = Path("bursar-demo")
DEMO_ROWS = 50_000
YOU = "you"
WIRE_PORT = 5433


def serve(
    places: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FOLDER|CONFIG", help="Data sets: configs, or folders with a bursar.toml.", show_default=False
        ),
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Made-up people in ./bursar-demo, and a token for you to look around with.")
    ] = False,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="For HTTP; 0 takes one that is free.")
    ] = 8000,
    pg_port: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, max=65535, help="For PostgreSQL clients; 5433 unless named.", show_default=False
        ),
    ] = None,
    no_pg: Annotated[bool, typer.Option("--no-pg", help="Without PostgreSQL clients.")] = False,
    cert: Annotated[Path | None, typer.Option(metavar="FILE", help="The certificate for TLS, a PEM file.")] = None,
    key: Annotated[Path | None, typer.Option(metavar="FILE", help="The key of the certificate, a PEM file.")] = None,
    behind_proxy: Annotated[
        bool,
        typer.Option("--behind-proxy", help="A proxy in front of it speaks TLS, and says who asks (X-Forwarded-For)."),
    ] = False,
    workers: Annotated[int, typer.Option(metavar="N", min=1, max=64, help="How many processes.")] = 1,
    requests: Annotated[
        int, typer.Option(metavar="N", min=0, help="Requests per minute and token; 0 is no limit.")
    ] = 1200,
    concurrent: Annotated[
        int, typer.Option(metavar="N", min=0, help="Requests at a time and token; 0 is no limit.")
    ] = 8,
    failures: Annotated[
        int, typer.Option(metavar="N", min=0, help="Log-ins per minute and address that may fail; 0 is no limit.")
    ] = 10,
    setup: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            file_okay=False,
            help="Owners may set up new data sets here, on the page; not unless named.",
        ),
    ] = None,
    openid: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A provider whose log-ins are believed: issuer, client_id ... in TOML."),
    ] = None,
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where a line for each request goes; else standard error.")
    ] = None,
) -> None:
    """Let people in: answer over HTTP, and PostgreSQL clients, whoever has a token (bursar user add).

    Ctrl-C or SIGTERM ends it: what runs is finished first.
    """
    from bursar.errors import Unsupported

    try:
        from bursar.service.request_limits import LimitSettings
        from bursar.service.run import Plan
        from bursar.service.run import serve as run
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.startswith("bursar"):
            raise
        told = f"a server needs {missing.name}\ntry: pip install '.[serve]' in a checkout of Bursar"
        raise Unsupported(told) from None
    listed = tuple(places or ([] if demo else [CONFIG]))
    token = dataset = None
    if demo:
        config, dataset, token = _demo()
        listed = (*listed, config)
    plan = Plan(
        places=listed,
        host=host,
        port=port,
        wire_port=None if no_pg else pg_port if pg_port is not None else WIRE_PORT if port else 0,
        cert=cert,
        key=key,
        behind_proxy=behind_proxy,
        workers=workers,
        log=log,
        room=setup,
        openid=None if openid is None else _openid(openid),
        settings=LimitSettings(requests=requests, concurrent=concurrent, failures=failures),
    )

    def ready(url: str, wire_url: str | None, names: list[str]) -> None:
        print(f"{url}/", flush=True)
        print(f"{url}/docs", flush=True)
        for name in names:
            print(f"{url}/v1/{name}", flush=True)
            if wire_url is not None:
                print(f"{wire_url}/{name}", flush=True)
        if token is not None:
            print(f"your token, for today: {token}", flush=True)
            if wire_url is not None:
                where = wire_url.replace("://", f"://{YOU}@")
                print(f"with psql: PGPASSWORD={token} psql {where}/{dataset}", flush=True)

    run(plan, ready)


def _openid(path: Path) -> OpenIdSettings:
    from bursar.errors import Unsupported

    try:
        from bursar.service.openid import OpenIdSettings
    except ModuleNotFoundError as missing:
        told = f"OpenID Connect needs {missing.name}\ntry: pip install '.[serve,openid]' in a checkout of Bursar"
        raise Unsupported(told) from None
    return OpenIdSettings.load(path)


def _demo() -> tuple[Path, str, str]:
    """The config of the made-up people, the name of their data set, and a token for whoever started the server.

    Earlier tokens are taken back.
    """
    import bursar
    from bursar.cli.tour import begin
    from bursar.config import load
    from bursar.service.datasets import people_of
    from bursar.service.people import Role

    config = DEMO / "bursar.toml"
    if not config.exists() or not load(config).ledger_path.exists():
        bursar.create(begin(DEMO, rows=DEMO_ROWS)).close()
    declared = load(config)
    people = people_of(declared)
    people.add(YOU, Role.OWNER)
    for old in people.tokens():
        if old.name == YOU:
            people.revoke(old.id)
    token = people.make_token(YOU, days=1)
    people.close()
    return config, declared.dataset, token
