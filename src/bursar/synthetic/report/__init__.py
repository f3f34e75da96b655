"""What to believe of a synthetic table."""
