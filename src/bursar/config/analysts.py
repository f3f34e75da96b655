"""[analysts]: who shares the budget, and how."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction

from bursar.analysts.shares import (
    BASES,
    EVERYONE,
    LOGS,
    POLICIES,
    SCHEDULERS,
    SEARCHERS,
    AnalystSettings,
    Seed,
    Shares,
    check_analyst,
)
from bursar.compile import Level
from bursar.compile import compile as compile_query
from bursar.compile.partwise import check_batch
from bursar.config.columns import LARGEST_CAPACITY
from bursar.config.section import HOMES, KEYS, Section, nearest, shown
from bursar.core.domain import Domain
from bursar.core.extensions.open_keys import OpenText
from bursar.core.queries import LinearMap
from bursar.errors import QueryError
from bursar.sql import parse
from bursar.views.measurements import joined

SHARES = "shares = { alice = 0.5, bob = 0.3 }, fractions of the budget"


def analysts(top: Section, domain: Domain, table: str, levels: tuple[Level, ...] = ()) -> AnalystSettings:
    """The settings of the section."""
    section = top.section("analysts", f"[analysts]\n{SHARES}")
    section.only(KEYS["analysts"], HOMES)
    policy = section.word("policy", POLICIES, "shared")
    scheduler = section.word("scheduler", SCHEDULERS, "none")
    shares = _shares(section) if "shares" in section else Shares()
    if not shares and (policy != "shared" or scheduler != "none"):
        key, value = ("policy", policy) if policy != "shared" else ("scheduler", scheduler)
        reason = f"analysts.{key} = {shown(value)} needs to know who the analysts are, and analysts.shares is missing"
        section.refuse(key, reason=reason, hint=SHARES)
    return AnalystSettings(
        policy=policy,
        scheduler=scheduler,
        probabilities=probabilities(section, scheduler, shares),
        idle=idle(section, scheduler),
        shares=shares,
        seed=seed(section, policy, domain, table, levels),
        log=section.word("log", LOGS, "own"),
        discover=section.word("discover", SEARCHERS, "all"),
        names=section.integer("names", "names = 50", least=0, most=LARGEST_CAPACITY) if "names" in section else None,
    )


def _shares(section: Section) -> Shares:
    listed = section.section("shares", SHARES)
    if not listed.entries:
        section.refuse("shares", reason="analysts.shares names nobody", hint=SHARES)
    shares: dict[str, float] = {}
    for name, value in listed.entries.items():
        with section.located("shares", name):
            check_analyst(name)
        if name == EVERYONE:
            reason = f'"{EVERYONE}" is the name of the account that all analysts have in common'
            section.refuse("shares", name, reason=reason, hint="another name")
        shares[name] = listed.number(name, value=value, hint=SHARES)
        if not 0 < shares[name] <= 1:
            reason = f"{listed.label(name)} must lie above 0 and at most 1, not {shown(value)}"
            section.refuse("shares", name, reason=reason, hint="a fraction of the budget, or leave this analyst out")
    with section.located("shares"):
        return Shares.of(shares)


PROBABILITIES = 'probabilities = "shares", or "uniform", or { alice = 0.7, bob = 0.3 }'
IDLE = 'idle = "wait", or idle = "skip-after 10m"'
LONGEST_IDLE = 366 * 86_400.0
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def probabilities(section: Section, scheduler: str, shares: Shares) -> Mapping[str, Fraction] | None:
    """How often the lot falls on each analyst; None: by share. Only proportions count."""
    if "probabilities" not in section:
        return None
    if scheduler != "randomized":
        reason = 'analysts.probabilities belong to scheduler = "randomized", and the scheduler is another one'
        section.refuse("probabilities", reason=reason, hint='scheduler = "randomized"')
    if isinstance(section.entries["probabilities"], str):
        by_share = section.word("probabilities", ("shares", "uniform"), "shares") == "shares"
        return None if by_share else {name: Fraction(1, len(shares)) for name in shares}
    listed = section.section("probabilities", PROBABILITIES)
    for name, value in listed.entries.items():
        if name not in shares:
            near = nearest(name, shares)
            hint = f'did you mean "{near}"?' if near else "name analysts who have a share"
            section.refuse("probabilities", name, reason=f"{listed.label(name)} has no share", hint=hint)
        if listed.number(name, value=value, hint=PROBABILITIES) <= 0:
            reason = f"{listed.label(name)} must be above 0: nobody who has a share is left out for ever"
            section.refuse("probabilities", name, reason=reason, hint=PROBABILITIES)
    if missing := [name for name in shares if name not in listed]:
        reason = f"analysts.probabilities says nothing about {shown(missing[0])}, who has a share"
        section.refuse("probabilities", reason=reason, hint=PROBABILITIES)
    return {name: Fraction(str(value)) for name, value in listed.entries.items()}


def idle(section: Section, scheduler: str) -> float | None:
    """After how many seconds without a question an analyst is passed over; None: turns wait for their owners."""
    if "idle" not in section:
        return None
    if scheduler == "none":
        reason = "analysts.idle says what happens to turns, and there is no scheduler to give any"
        section.refuse("idle", reason=reason, hint='scheduler = "round-robin"')
    text = section.text("idle", IDLE)
    if text == "wait":
        return None
    match = re.fullmatch(r"skip-after (\d{1,9})\s?([smhd])", text, re.ASCII)
    if match is None:
        section.refuse("idle", reason=f"analysts.idle cannot be {shown(text)}", hint=f"{IDLE} (s, m, h or d)")
    seconds = float(int(match[1]) * _UNITS[match[2]])
    if seconds > LONGEST_IDLE:
        section.refuse("idle", reason="analysts.idle is at most a year", hint=IDLE)
    return seconds


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
    _check_closed(inner, domain, rows.attrs, "questions")
    return Seed(fraction=Fraction(str(fraction)), basis=basis, columns=domain.ordered(rows.attrs), workload=rows)


def _columns(inner: Section, domain: Domain) -> tuple[str, ...]:
    items = inner.items("columns", EXAMPLE)
    if not items:
        inner.refuse("columns", reason="analysts.seed.columns names no column", hint=EXAMPLE)
    names: list[str] = []
    for place, name in enumerate(items):
        if not isinstance(name, str) or name not in domain:
            near = nearest(name, domain.names) if isinstance(name, str) else ""
            hint = f'did you mean "{near}"?' if near else "name one of the [columns.*]"
            label = inner.label("columns", place)
            inner.refuse("columns", place, reason=f"{label} is no declared column: {shown(name)}", hint=hint)
        names.append(name)
    columns = domain.ordered(names)
    if len(columns) < len(names):
        inner.refuse("columns", reason="analysts.seed.columns names a column twice", hint=EXAMPLE)
    _check_closed(inner, domain, columns, "columns")
    return columns


def _check_closed(inner: Section, domain: Domain, columns: Sequence[str], key: str) -> None:
    """Refuse open columns: what a seed measures is there before any text of them has a cell."""
    if opened := [name for name in columns if isinstance(domain[name], OpenText)]:
        reason = f"{inner.label(key)}: {opened[0]} is open, and a seed is about columns whose values are declared"
        inner.refuse(key, reason=reason, hint=EXAMPLE)


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
        except QueryError as refusal:
            from bursar.rewrite.suggest import suggest  # a good family does not need it

            fault = suggest(text, refusal, domain, table, None, levels)
            inner.refuse("questions", place, reason=f"{label} cannot be asked:\n{fault}")
    rows = joined(maps)
    if rows.rows == 0:
        inner.refuse("questions", reason="analysts.seed.questions ask nothing", hint=DECLARED)
    return rows
