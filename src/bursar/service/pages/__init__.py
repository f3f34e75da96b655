"""Door 3: the page. Templates of the server, two small scripts, no build step; works without a network.

visits.py    who looks at a page: cookies, where requests may come from, headers
doors.py     logging in and out
elsewhere.py logging in with an account at a provider
ask.py       the editor, what a question would cost, its answer
looking.py   the budget, the log, the columns, the queue
synthetic.py synthetic tables, as jobs
settling.py  setting up a new data set
caring.py    what an owner does: people, tokens, shares, sealing, versions
charts.py    charts as plain geometry
render.py    templates
"""

from __future__ import annotations

from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

from bursar.service.pages import ask, caring, doors, elsewhere, looking, settling, synthetic
from bursar.service.pages.render import FOLDER


def add_pages(app: FastAPI, *, wire_port: int | None = None) -> None:
    """Let browsers in to an app whose state has the data sets; pages tell of a port for PostgreSQL clients."""
    app.state.wire_port = wire_port
    app.mount("/-/static", StaticFiles(directory=FOLDER / "static"))
    for room in (ask, looking, synthetic, caring, settling, elsewhere, doors):
        app.include_router(room.router)
    app.include_router(settling.uploads)
