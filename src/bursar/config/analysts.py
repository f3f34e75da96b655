"""[analysts]: who shares the budget, and how."""

from __future__ import annotations

from bursar.analysts.settings import POLICIES, SCHEDULERS, Settings
from bursar.analysts.shares import EVERYONE, Shares, check_analyst
from bursar.config.schema import HOMES, KEYS
from bursar.config.section import Section, shown
from bursar.config.seed import seed
from bursar.config.turns import idle, probabilities
from bursar.core.domain import Domain
from bursar.compile import Level

SHARES = "shares = { alice = 0.5, bob = 0.3 }, fractions of the budget"


def analysts(top: Section, domain: Domain, table: str, levels: tuple[Level, ...] = ()) -> Settings:
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
        seed=seed(section, policy, domain, table, levels),
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
