"""Bursar through its public interface: ledger on disk, budget enforced."""

from __future__ import annotations

from typing import Any

import bursar


def open_table(job: dict[str, Any]) -> tuple[Any, Any]:
    bursar.create("bursar.toml").close()
    db = bursar.open("bursar.toml", analyst="ana")
    spent = 0.0

    def ask(question: dict[str, Any]) -> dict[str, float]:
        nonlocal spent
        answer = db.query(question["sql"], within=job["within"], confidence=job["confidence"])
        spent += answer.charge
        return {label[0]: value[0] for label, value in zip(answer.labels, answer.values, strict=True)}

    return ask, lambda: spent
