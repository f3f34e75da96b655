"""Stage 5 of 5: records -> Estimate. Everything here is computed from the log, so it is free."""
