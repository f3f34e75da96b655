"""The keys of [analysts] that say how turns are given: probabilities and idle."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from bursar.analysts.shares import Shares
from bursar.config.section import Section, nearest, shown

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
    found = re.fullmatch(r"skip-after (\d{1,9})\s?([smhd])", text, re.ASCII)
    if found is None:
        section.refuse("idle", reason=f"analysts.idle cannot be {shown(text)}", hint=f"{IDLE} (s, m, h or d)")
    seconds = float(int(found[1]) * _UNITS[found[2]])
    if seconds > LONGEST_IDLE:
        section.refuse("idle", reason="analysts.idle is at most a year", hint=IDLE)
    return seconds
