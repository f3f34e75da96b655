"""What a server answers with: JSON that any reader understands, CSV, Arrow, and the stored form of which a client can
make an equal `Answer`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import date
from enum import Enum

from starlette.responses import Response

from bursar.answer import Answer
from bursar.planner.batch import Batch
from bursar.report.answer_columns import library

JSON = "application/json"
CSV = "text/csv"
PARQUET = "application/vnd.apache.parquet"
ARROW = "application/vnd.apache.arrow.stream"
STORED = "application/vnd.bursar.answer+json"
"""What `Answer.to_bytes` gives; `Answer.from_bytes` reads it."""

STORED_BATCH = "application/vnd.bursar.batch+json"
"""What `Batch.to_bytes` gives; `Batch.from_bytes` reads it."""


def answered(answer: Answer, accept: str) -> Response:
    """An answer in the first form that the client names and we have; JSON where there is none."""
    for kind in wanted(accept):
        match kind:
            case "text/csv":
                return Response(answer.to_csv(), media_type=f"{CSV}; charset=utf-8")
            case "application/vnd.apache.arrow.stream":
                return Response(_arrow(answer), media_type=ARROW)
            case "application/vnd.bursar.answer+json":
                return Response(answer.to_bytes(), media_type=STORED)
            case "application/json":
                break
    return json_of(answer.to_json())


def answered_together(batch: Batch, accept: str) -> Response:
    """The answers to several questions, as JSON."""
    if STORED_BATCH in wanted(accept):
        return Response(batch.to_bytes(), media_type=STORED_BATCH)
    return json_of(batch.to_json())


def wanted(accept: str) -> list[str]:
    """The media types of an Accept header, in its order."""
    return [part.partition(";")[0].strip().lower() for part in accept.split(",")]


def json_of(value: object, status: int = 200) -> Response:
    """Plain values as JSON that any reader understands: what is not finite is null, a date is text."""
    return Response(json.dumps(plain(value), allow_nan=False), status, media_type=JSON)


def plain(value: object) -> object:
    """A value without what JSON has no word for."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case date():
            return value.isoformat()
        case Enum():
            return value.value
        case str():
            return value
        case Mapping():
            return {key: plain(item) for key, item in value.items()}
        case Sequence():
            return [plain(item) for item in value]
    return value


def _arrow(answer: Answer) -> bytes:
    """A stream of Arrow; what the answer says about itself is in the metadata of the schema."""
    arrow, ipc = (library(name, extra="arrow", what="an answer as Arrow") for name in ("pyarrow", "pyarrow.ipc"))
    table, sink = answer.to_arrow(), arrow.BufferOutputStream()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    body: bytes = sink.getvalue().to_pybytes()
    return body
