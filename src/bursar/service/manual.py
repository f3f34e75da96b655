"""/docs: the OpenAPI as a page to read, made without scripts: it works offline and under a strict policy."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape

from fastapi import FastAPI
from starlette.responses import HTMLResponse, Response

Part = Mapping[str, object]

POLICY = "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

STYLE = """
:root { color-scheme: light dark; --line: color-mix(in srgb, CanvasText 18%, Canvas); }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
code, pre { font: 14px/1.45 ui-monospace, monospace; }
pre { overflow-x: auto; padding: .75rem; border: 1px solid var(--line); border-radius: 6px; }
summary { cursor: pointer; padding: .35rem 0; }
.method { display: inline-block; min-width: 4.5rem; font-weight: 600; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid var(--line); }
"""

HEADINGS = {
    "ask": "Ask",
    "look": "Look",
    "jobs": "What takes long",
    "owner": "For owners",
    "server": "The server itself",
}


def add_manual(app: FastAPI) -> None:
    """The page, and its style."""

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(page(app.openapi()), headers={"Content-Security-Policy": POLICY})

    @app.get("/docs.css", include_in_schema=False)
    async def style() -> Response:
        return Response(STYLE, media_type="text/css")


def page(openapi: Part) -> str:
    """All routes by subject, each with what it takes, what it gives, and an example."""
    info, paths = _part(openapi, "info"), _part(openapi, "paths")
    every = [
        (path, method, _of(operation)) for path, methods in paths.items() for method, operation in _of(methods).items()
    ]
    body = [f"<h1>{_text(info['title'])} {_text(info['version'])}</h1>"]
    body += [f"<p>{_text(part)}</p>" for part in str(info["description"]).split("\n\n")]
    body.append('<p>The same for programs: <a href="/openapi.json">openapi.json</a></p>')
    for tag, heading in HEADINGS.items():
        body.append(f"<h2>{heading}</h2>")
        for path, method, operation in every:
            if tag in _list(operation.get("tags")):
                body.append("".join(_route(openapi, path, method, operation)))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Bursar: HTTP</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="stylesheet" href="/docs.css"></head><body><main>{"".join(body)}</main></body></html>'
    )


def _route(openapi: Part, path: str, method: str, operation: Part) -> Iterator[str]:
    told, _, more = str(operation.get("description", "")).partition("\n\n")
    yield f'<details><summary><span class="method">{method.upper()}</span><code>{_text(path)}</code> '
    yield f"{_text(told)}</summary>"
    if more:
        yield f"<p>{_text(more)}</p>"
    fields = [
        (str(place["name"]), f"{place['in']}", str(place.get("description", "")))
        for place in map(_of, _list(operation.get("parameters")))
    ]
    shape = _part(operation, "requestBody", "content", "application/json", "schema")
    if shape:
        shape = _resolved(openapi, shape)
        needed = _list(shape.get("required"))
        fields += [
            (name, "body" if name in needed else "body, may be left out", str(_of(about).get("description", "")))
            for name, about in _part(shape, "properties").items()
        ]
        yield "<p>Example</p>" + _shown(_list(shape.get("examples"))[:1])
    if fields:
        rows = "".join(
            f"<tr><td><code>{_text(name)}</code></td><td>{_text(where)}</td><td>{_text(what)}</td></tr>"
            for name, where, what in fields
        )
        yield f"<table><tr><th>name</th><th>where</th><th></th></tr>{rows}</table>"
    for status, reply in _part(operation, "responses").items():
        content = _part(_of(reply), "content")
        kinds = ", ".join(f"<code>{_text(kind)}</code>" for kind in content)
        yield f"<p><b>{_text(status)}</b> {_text(_of(reply).get('description', ''))} {kinds}</p>"
        if str(status).startswith("2"):
            example = _part(content, "application/json").get("example")
            yield _shown([] if example is None else [example])
    yield "</details>"


def _shown(examples: list[object]) -> str:
    return "".join(f"<pre>{_text(json.dumps(example, indent=2))}</pre>" for example in examples)


def _resolved(openapi: Part, shape: Part) -> Part:
    """What a reference within the document stands for."""
    reference = shape.get("$ref")
    return shape if reference is None else _part(openapi, *str(reference).removeprefix("#/").split("/"))


def _part(whole: Part, *names: str) -> Part:
    for name in names:
        whole = _of(whole.get(name))
    return whole


def _of(value: object) -> Part:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    """Escaped, and with what stands in backquotes as code."""
    parts = escape(str(value)).split("`")
    return "".join(f"<code>{part}</code>" if place % 2 else part for place, part in enumerate(parts))
