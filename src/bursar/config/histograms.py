"""[histograms]: which columns the histograms that learn from answers keep together."""

from __future__ import annotations

from bursar.config.section import HOMES, KEYS, Section
from bursar.config.sections import columns_of
from bursar.core.domain import Domain
from bursar.estimation.simultaneous import Family
from bursar.views.histograms import MOST_BINS

EXAMPLE = 'groups = [["age", "sex"], ["region", "income"]], each a list of columns'

Groups = tuple[tuple[str, ...], ...]


def groups(top: Section, domain: Domain, family: Family | None) -> Groups:
    """The declared groups of columns, which have none in common; none where columns are grouped as they are asked."""
    if "histograms" not in top:
        return ()
    section = top.section("histograms", f"[histograms]\n{EXAMPLE}")
    section.only(KEYS["histograms"], HOMES)
    items = section.items("groups", EXAMPLE)
    if family is not None:
        reason = (
            'goal.contract = "simultaneous" has no use for histograms that learn: their answers depend on the noise'
        )
        section.refuse("groups", reason=reason, hint='contract = "per-query", or no [histograms]')
    found: dict[tuple[str, ...], int] = {}
    for place in range(len(items)):
        columns = columns_of(section, domain, "groups", place, EXAMPLE)
        _check(section, domain, place, columns)
        for other, earlier in found.items():
            if both := sorted(set(columns) & set(other)):
                reason = f"{section.label('groups', place)} and {section.label('groups', earlier)} both have {both[0]}"
                section.refuse("groups", place, reason=reason, hint="each column in one group, or one group of both")
        found[columns] = place
    return tuple(found)


def _check(section: Section, domain: Domain, place: int, columns: tuple[str, ...]) -> None:
    """Refuse the partition column, and what one histogram cannot hold."""
    label = section.label("groups", place)
    if domain.partition in columns:
        reason = f"{label} has the partition column {domain.partition}: every partition has histograms of its own"
        section.refuse("groups", place, reason=reason, hint=f"the other columns, without {domain.partition}")
    if (cells := domain.cells(columns)) > MOST_BINS:
        reason = f"{label} has {cells:,} joint cells, and a histogram has at most {MOST_BINS:,}"
        section.refuse("groups", place, reason=reason, hint="fewer columns, or wider bins")
