"""The journal and the metrics: public facts alone, and all processes together."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest

from bursar.service.journal import Journal, Metrics


def test_a_fault_is_told_by_its_kind_and_place_and_not_by_its_text() -> None:
    told = io.StringIO()
    try:
        raise ValueError("31 people live in Northmark")
    except ValueError as fault:
        Journal(told).fault(fault, "id")
    line = json.loads(told.getvalue())
    assert (line["what"], line["request"], line["kind"]) == ("fault", "id", "ValueError")
    assert line["where"].startswith("test_journal.py:")
    assert "Northmark" not in told.getvalue()


def test_metrics_are_what_prometheus_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = Metrics(tmp_path)
    for seconds in (0.001, 0.02, 99.0):
        own.saw("http", "/v1/{data}/query", "200", seconds)
    monkeypatch.setattr(os, "getpid", lambda: 1)
    other = Metrics(tmp_path)
    other.saw("http", "/v1/{data}/query", "429", 0.02)
    other.saw("wire", "query", "ok", 0.02)
    other.share()
    own.share()
    assert own.text() == other.text()
    values = dict(line.rsplit(" ", 1) for line in own.text().splitlines() if not line.startswith("#"))
    place = 'door="http",route="/v1/{data}/query"'
    assert values[f'bursar_requests_total{{{place},outcome="200"}}'] == "3"
    assert values[f'bursar_requests_total{{{place},outcome="429"}}'] == "1"
    assert values[f'bursar_request_seconds_bucket{{{place},le="0.025"}}'] == "3"
    assert values[f'bursar_request_seconds_bucket{{{place},le="+Inf"}}'] == "4"
    assert values[f"bursar_request_seconds_count{{{place}}}"] == "4"
    assert values['bursar_requests_total{door="wire",route="query",outcome="ok"}'] == "1"
