"""Names that say that a column holds identifiers, and names that only look like it."""

from __future__ import annotations

from bursar.curate.guess import names_identifiers
from harness.cases import every

IDENTIFIERS = [
    "id", "ID", "customer_id", "customerId", "CustomerID", "Patienten-ID", "patientid", "person.key", "uuid", "SSN",
    "Kunde Nr.", "Kd-Nr", "KdNr", "Kundennr", "Kundennummer", "Kunden_Nummer", "client no", "Client No.", "clientNo",
    "policy number", "account_num", "MEMBER_NUMBER", "Mitgliedsnummer", "Fall-Nr.", "order no",
    "pidnum", "pid", "subjid", "MRN", "user-id", "rownames",
    "Nr.", "nr", "№", "client", "Kunde", "SUBJECT", "household",
    "id_number", "ID-Nr.", "id no", "ID Number", "cliente número", "client numéro", "cliente nu\u0301mero",
]  # fmt: skip

OTHERS = [
    "number_of_children", "nr_rooms", "no_of_customers", "num_users", "customer_count", "customer_number_total", "paid",
    "valid", "monkey", "casino", "house no", "Haus-Nr.", "floor number", "number", "piano", "id_type", "age",
    "subject group", "patient_age", "accountpaid", "", "42",
    "número", "id_number_total", "paid no", "valid number", "ID-Nr-Art",
]  # fmt: skip


@every("name", lambda: IDENTIFIERS)
def test_these_name_identifiers(name: str) -> None:
    assert names_identifiers(name)


@every("name", lambda: OTHERS)
def test_these_do_not(name: str) -> None:
    assert not names_identifiers(name)
