"""What the budget went into, as far as the one who looks may know it: functions of the log and of public facts."""

from bursar.report.spending.overview import Portion, Spending, spending_of
from bursar.report.spending.people import Used
from bursar.report.spending.savings import Saved

__all__ = ["Portion", "Saved", "Spending", "Used", "spending_of"]
