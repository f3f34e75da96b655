"""[analysts]: who shares the budget, and how."""

from __future__ import annotations

from fractions import Fraction

from bursar.analysts.settings import BASES, POLICIES, SCHEDULERS, Seed, Settings
from bursar.analysts.shares import EVERYONE, Shares, check_analyst
from bursar.config.schema import HOMES, KEYS
from bursar.config.section import Section, nearest, shown
from bursar.config.turns import idle, probabilities
from bursar.domain import Domain

SHARES = "shares = { alice = 0.5, bob = 0.3 }, fractions of the budget"
SEED = 'seed = { fraction = 0.25, basis = "histogram", columns = ["age"] }'
SEEDED = "seeded-cache"


def analysts(top: Section, domain: Domain) -> Settings:
    """The settings; those of one common budget where the section is missing."""
    if "analysts" not in top:
        return Settings()
    section = top.section("analysts", f"[analysts]\n{SHARES}")
    section.only(KEYS["analysts"], HOMES)
    policy = section.word("policy", POLICIES, "shared")
    scheduler = section.word("scheduler", SCHEDULERS, "none")
    shares = _shares(section) if "shares" in section else Shares()
    if not shares and (policy != "shared" or scheduler != "none"):
        key, value = ("policy", policy) if policy != "shared" else ("scheduler", scheduler)
        reason = f"analysts.{key} = {shown(value)} needs to know who the analysts are, and analysts.shares is missing"
        section.refuse(key, reason=reason, hint=SHARES)
    return Settings(
        policy=policy,
        scheduler=scheduler,
        probabilities=probabilities(section, scheduler, shares),
        idle=idle(section, scheduler),
        shares=shares,
        seed=_seed(section, policy, domain),
    )


def _shares(section: Section) -> Shares:
    listed = section.section("shares", SHARES)
    if not listed.entries:
        section.refuse("shares", reason="analysts.shares names nobody", hint=SHARES)
    for name, value in listed.entries.items():
        with section.located("shares", name):
            check_analyst(name)
        if name == EVERYONE:
            reason = f'"{EVERYONE}" is the name of the account that all analysts have in common'
            section.refuse("shares", name, reason=reason, hint="another name")
        listed.number(name, value=value, hint=SHARES)
        if not 0 < value <= 1:
            reason = f"{listed.label(name)} must lie above 0 and at most 1, not {shown(value)}"
            section.refuse("shares", name, reason=reason, hint="a fraction of the budget, or leave this analyst out")
    with section.located("shares"):
        return Shares.of(listed.entries)


def _seed(section: Section, policy: str, domain: Domain) -> Seed | None:
    if policy != SEEDED:
        if "seed" in section:
            reason = f'analysts.seed says what policy = "{SEEDED}" measures for everyone, and the policy is another one'
            section.refuse("seed", reason=reason, hint=f'policy = "{SEEDED}"')
        return None
    if "seed" not in section:
        section.refuse("policy", reason=f'analysts.policy = "{SEEDED}" needs analysts.seed', hint=SEED)
    inner = section.section("seed", SEED)
    inner.only(("fraction", "basis", "columns"))
    fraction = inner.positive("fraction", SEED, most=1.0)
    if fraction == 1:
        inner.refuse("fraction", reason="a seed for the whole budget leaves nothing for the analysts", hint=SEED)
    names = inner.items("columns", SEED)
    if not names:
        inner.refuse("columns", reason="analysts.seed.columns names no column", hint=SEED)
    for place, name in enumerate(names):
        if not isinstance(name, str) or name not in domain:
            near = nearest(name, domain.names) if isinstance(name, str) else ""
            hint = f'did you mean "{near}"?' if near else "name one of the [columns.*]"
            label = inner.label("columns", place)
            inner.refuse("columns", place, reason=f"{label} is no declared column: {shown(name)}", hint=hint)
    columns = domain.ordered(names)
    if len(columns) < len(names):
        inner.refuse("columns", reason="analysts.seed.columns names a column twice", hint=SEED)
    basis = inner.word("basis", BASES, "histogram")
    return Seed(fraction=Fraction(str(fraction)), basis=basis, columns=columns)
