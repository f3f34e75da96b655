"""What a synthetic table is to be right about, what it costs, and how it is carried out."""
