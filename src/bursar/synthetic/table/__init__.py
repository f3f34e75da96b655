"""Tables of made-up rows."""
