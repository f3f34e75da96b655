"""Which questions of people and tools are accepted: `python -m benchmarks.sql [--quick]`.

`sql_corpus/` has, per source, a config and questions in the manner of its public documentation and tests; those
of ibis and SQLAlchemy are what the two really send (`sql_capture.py`), and `held_out` was written down before any of it
was tried: 54 of its 84 questions were accepted then; of the 40 of `held_out_2`, the 60 of `held_out_3`, the 60 of
`held_out_4` and the 60 of `held_out_5`, about five tables, written later in the same way, 21, 33, 52 and 48, and
of the 80 of `held_out_6`, the 75 of `held_out_7` and the 75 of `held_out_8`, about three tables each, 62, 63 and 55.
Nothing is measured and nothing is charged: a question is read and compiled, and what is refused is shown with its
reason.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bursar.compile.compile_cache import CompileCache
from bursar.config import Config
from bursar.config.load import load
from bursar.errors import QueryError
from bursar.rewrite.suggest import suggest
from bursar.sql.parameters import resolve_day
from bursar.sql.tokens import questions_of

CORPUS = Path(__file__).with_name("sql_corpus")

ASKED_ON = datetime(2023, 6, 30, tzinfo=UTC)
"""What NOW() is."""

TOOLS = ("superset", "metabase", "tableau", "grafana", "ibis", "sqlalchemy")
"""What tools write; the others are what people write."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What came of one question."""

    text: str
    accepted: bool
    reason: str = ""
    rewrite: str = ""
    differs: str = ""


def verdict(text: str, config: Config) -> Verdict:
    """Whether a question is accepted, and if not, why, with what is offered instead."""
    text = resolve_day(text, lambda: ASKED_ON).text
    reader = CompileCache(config.domain, config.table, config.levels, config.unit, config.tables)
    try:
        reader.compile(reader.parse(text))
    except QueryError as refusal:
        if reader.knows_better(text):
            return Verdict(text=text, accepted=False, reason=refusal.reason)
        offered = suggest(text, refusal, config.domain, config.table, None, config.levels, config.unit)
        return Verdict(
            text=text,
            accepted=False,
            reason=offered.reason,
            rewrite=offered.rewrite,
            differs=offered.differs,
        )
    return Verdict(text=text, accepted=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="the same: all questions are read in a few seconds")
    options.add_argument("--refused", action="store_true", help="list what is refused, with its reason")
    options.add_argument("--source", help="one source only")
    chosen = options.parse_args()
    began = time.process_time()
    print(f"{'source':<20} {'asked':>6} {'accepted':>9} {'same':>6} {'differs':>8} {'reason':>7} {'accepted %':>11}")
    totals: Counter[str] = Counter()
    refused: list[tuple[str, Verdict]] = []
    for file in sorted(CORPUS.glob("*.sql")):
        if chosen.source and file.stem != chosen.source:
            continue
        config = load(file.with_suffix(".toml"))
        verdicts = [verdict(text, config) for text in questions_of(file.read_text(encoding="utf-8"))]
        counts = Counter(_kind(one) for one in verdicts)
        refused += [(file.stem, one) for one in verdicts if not one.accepted]
        _line(file.stem, counts)
        totals += counts
        group = "tools" if file.stem in TOOLS else "people"
        totals += Counter({f"{group} {kind}": count for kind, count in counts.items()})
    for group in ("people", "tools"):
        _line(group, Counter({kind: totals[f"{group} {kind}"] for kind in KINDS}))
    _line("all", totals)
    if chosen.refused:
        for source, one in refused:
            print(f"\n[{source}] {one.text}\n    {one.reason}\n    -> {one.rewrite} {one.differs}")
    print(f"{time.process_time() - began:.1f} s of CPU for {sum(totals[kind] for kind in KINDS)} questions")
    print(json.dumps({"bench": "sql", "quick": chosen.quick, "figures": dict(totals)}))


KINDS = ("accepted", "same", "differs", "reason")


def _kind(one: Verdict) -> str:
    if one.accepted:
        return "accepted"
    return "reason" if not one.rewrite else "differs" if one.differs else "same"


def _line(name: str, counts: Counter[str]) -> None:
    numbers = [counts[kind] for kind in KINDS]
    share = 100 * numbers[0] / max(sum(numbers), 1)
    print(
        f"{name:<20} {sum(numbers):>6} {numbers[0]:>9} {numbers[1]:>6} {numbers[2]:>8} {numbers[3]:>7} {share:>11.0f}"
    )


if __name__ == "__main__":
    main()
