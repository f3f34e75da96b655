"""The data owner's side of the data: survey, draft, confirm, check, ingest. No analyst's path imports it."""
