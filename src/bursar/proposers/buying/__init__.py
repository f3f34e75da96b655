"""What to buy: problems, plans, and how exact each row must be."""
