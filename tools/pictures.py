"""Draws the pictures of the documentation with the real code: `python tools/pictures.py`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import bursar
from bursar.core.accounting import AddRemove, Footprint, Noise, NoiseKind
from bursar.core.domain import Domain, IntegerRange
from bursar.core.queries import Mask, Product, Steps
from bursar.curate.demo import generate
from bursar.report.plots import picture_of

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
DOMAIN = Domain((IntegerRange(name="age", lower=0, upper=99, null=0),))
QUESTIONS = [
    ("age 0-17 within 40", Steps.ranges([0], [18], 100), 13.4),
    ("age 65+ within 30", Steps.ranges([65], [100], 100), 10.0),
    ("age 18-64 by decade within 60", Steps.ranges(range(18, 64, 10), [*range(28, 64, 10), 65], 100), 12.6),
    ("everybody within 100", Steps.total(100), 33.4),
]


def profile() -> None:
    """Four questions, the loss of every age, and what is spent."""
    figure, axis = plt.subplots(figsize=(8, 3.6))
    book, bottom = AddRemove(DOMAIN), np.zeros(100)
    for text, steps, scale in QUESTIONS:
        norm = Product((Mask(("age",), (100,), steps),)).norms(1)[0]
        footprint = Footprint(norm=norm, units=Noise(kind=NoiseKind.LAPLACE, scale=scale).pure_units(), version=1)
        loss = norm.vectors[0] * footprint.units / 2**50
        axis.bar(np.arange(100), loss, bottom=bottom, width=1.0, label=text)
        bottom += loss
        book.add([footprint])
    spent = book.spent() / 2**50
    added = sum(1 / scale for _, _, scale in QUESTIONS)
    axis.axhline(spent, color="black", linewidth=1)
    axis.text(1, spent + 0.004, f"spent: {spent:.3f}, the largest loss of any age", fontsize=9)
    axis.axhline(added, color="grey", linewidth=1, linestyle="--")
    axis.text(1, added + 0.004, f"the sum of the prices would be {added:.3f}", fontsize=9, color="grey")
    axis.set_title("Four questions, and what is learnt about people of each age", fontsize=10)
    axis.set(xlabel="age", ylabel="loss (epsilon)", xlim=(-0.5, 99.5), ylim=(0, added * 1.15))
    axis.legend(fontsize=8, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.18), frameon=False)
    figure.savefig(PICTURES / "profile.png", dpi=120, bbox_inches="tight")


def tutorial() -> None:
    """The answer that the tutorial for analysts plots."""
    with tempfile.TemporaryDirectory() as folder, bursar.create(generate(Path(folder) / "people.csv")) as db:
        answer = db.query("SELECT joined, COUNT(*) AS n FROM people GROUP BY joined", within=150)
        picture_of(answer).savefig(PICTURES / "tutorial.png", dpi=100)


if __name__ == "__main__":
    PICTURES.mkdir(parents=True, exist_ok=True)
    profile()
    tutorial()
