"""analysts.seed: what policy = "seeded-cache" measures once for everyone."""

from __future__ import annotations

from fractions import Fraction

from bursar.analysts.settings import BASES, Seed
from bursar.config.section import Section, nearest, shown
from bursar.core.domain import Domain
from bursar.errors import QueryError
from bursar.views.measurements import joined
from bursar.core.queries import LinearMap
from bursar.sql import parse
from bursar.compile import Level
from bursar.compile import compile as compile_query
from bursar.compile.partwise import check_batch

EXAMPLE = 'seed = { fraction = 0.25, basis = "histogram", columns = ["age"] }'
DECLARED = 'seed = { fraction = 0.25, basis = "best", questions = ["SELECT age, COUNT(*) FROM people GROUP BY age"] }'
SEEDED = "seeded-cache"


def seed(section: Section, policy: str, domain: Domain, table: str, levels: tuple[Level, ...]) -> Seed | None:
    """The seed; None where the policy has none."""
    if policy != SEEDED:
        if "seed" in section:
            reason = f'analysts.seed says what policy = "{SEEDED}" measures for everyone, and the policy is another one'
            section.refuse("seed", reason=reason, hint=f'policy = "{SEEDED}"')
        return None
    if "seed" not in section:
        section.refuse("policy", reason=f'analysts.policy = "{SEEDED}" needs analysts.seed', hint=EXAMPLE)
    inner = section.section("seed", EXAMPLE)
    inner.only(("fraction", "basis", "columns", "questions"))
    fraction = inner.positive("fraction", EXAMPLE, most=1.0)
    if fraction == 1:
        inner.refuse("fraction", reason="a seed for the whole budget leaves nothing for the analysts", hint=EXAMPLE)
    basis = inner.word("basis", BASES, "histogram")
    if "questions" not in inner:
        return Seed(fraction=Fraction(str(fraction)), basis=basis, columns=_columns(inner, domain))
    if basis != "best" or "columns" in inner:
        reason = 'analysts.seed.questions go with basis = "best", and name the columns themselves'
        inner.refuse("questions", reason=reason, hint=DECLARED)
    rows = _workload(inner, domain, table, levels)
    return Seed(fraction=Fraction(str(fraction)), basis=basis, columns=domain.ordered(rows.attrs), workload=rows)


def _columns(inner: Section, domain: Domain) -> tuple[str, ...]:
    names = inner.items("columns", EXAMPLE)
    if not names:
        inner.refuse("columns", reason="analysts.seed.columns names no column", hint=EXAMPLE)
    for place, name in enumerate(names):
        if not isinstance(name, str) or name not in domain:
            near = nearest(name, domain.names) if isinstance(name, str) else ""
            hint = f'did you mean "{near}"?' if near else "name one of the [columns.*]"
            label = inner.label("columns", place)
            inner.refuse("columns", place, reason=f"{label} is no declared column: {shown(name)}", hint=hint)
    columns = domain.ordered(names)
    if len(columns) < len(names):
        inner.refuse("columns", reason="analysts.seed.columns names a column twice", hint=EXAMPLE)
    return columns


def _workload(inner: Section, domain: Domain, table: str, levels: tuple[Level, ...]) -> LinearMap:
    """The rows that the declared questions need, each once."""
    questions = inner.items("questions", DECLARED)
    maps: list[LinearMap] = []
    for place, text in enumerate(questions):
        label = inner.label("questions", place)
        if not isinstance(text, str):
            inner.refuse("questions", place, reason=f"{label} must be SQL in quotes, not {shown(text)}", hint=DECLARED)
        try:
            maps.append(compile_query(parse(text), domain, table, None, levels).map)
            check_batch(maps[-1])
        except QueryError as fault:
            inner.refuse("questions", place, reason=f"{label} cannot be asked:\n{fault}")
    rows = joined(maps)
    if rows.rows == 0:
        inner.refuse("questions", reason="analysts.seed.questions ask nothing", hint=DECLARED)
    return rows
