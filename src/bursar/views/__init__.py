"""What the log knows: views that are advanced record by record, free."""
