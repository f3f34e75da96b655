"""What is asked about together, and what alone: nothing is confirmed that was not shown."""

from __future__ import annotations

from datetime import date

from bursar.config.section import Place
from bursar.core.domain import Attribute, Bins, Categories, Dates, Domain, IntegerRange, Period
from bursar.curate.confirm import ON_A_SCREEN, SHOWN, counting, says, screens
from harness.small import config

LONG = Categories(name="long", values=tuple(f"v{number}" for number in range(SHOWN + 1)))
SHORT = Categories(name="short", values=tuple(f"v{number}" for number in range(SHOWN)))


def places(*attributes: Attribute) -> list[Place]:
    return [("columns", attribute.name) for attribute in attributes]


def test_sections_and_long_lists_come_alone_and_kinds_together() -> None:
    day = Dates(name="day", first=date(2024, 1, 1), last=date(2024, 12, 31), by=Period.MONTH)
    sex, age = Categories(name="sex", values=("F", "M")), IntegerRange(name="age", lower=0, upper=99)
    income = Bins(name="income", edges=(0.0, 10.0, 20.0))
    settings = config(domain=Domain((age, LONG, sex, day, SHORT, income)))
    found = screens(settings, [("source",), ("budget",), *places(age, LONG, sex, day, SHORT, income)])
    assert found == [
        ("", [("source",)]),
        ("", [("budget",)]),
        ("columns of numbers and days", places(age, day, income)),
        ("", places(LONG)),
        ("columns of listed values", places(sex, SHORT)),
    ]
    assert screens(settings, places(sex)) == [("", places(sex))]


def test_a_screen_holds_so_many_columns() -> None:
    many = [IntegerRange(name=f"x{number}", lower=0, upper=9) for number in range(ON_A_SCREEN + 1)]
    found = screens(config(domain=Domain(tuple(many))), places(*many))
    assert [(bool(kind), len(members)) for kind, members in found] == [(True, ON_A_SCREEN), (False, 1)]


def test_all_values_of_a_list_can_be_shown() -> None:
    settings = config(domain=Domain((LONG, SHORT)))
    assert says(settings, ("columns", "long")).endswith('"v19", and 1 more; others count as other')
    assert '"v20"' in says(settings, ("columns", "long"), shown=100)
    assert "more" not in says(settings, ("columns", "short"))


def test_the_number_of_rows_is_the_only_line_that_changes() -> None:
    text = '[privacy]\nunit = { column = "who" }  # whose\nmax_contributions = 1\nneighbours = "add-remove"\n'
    changed = 'unit = { column = "who" }  # whose\nneighbours = "add-remove"\nmax_contributions = 7'
    assert counting(text, ("privacy",), 7) == changed
    assert counting(text.replace("max_contributions = 1\n", ""), ("privacy",), 7) == changed
