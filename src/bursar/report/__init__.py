"""Answers in other people's hands: data frames, files, notebooks, pictures, bars in a terminal.

Every library is imported when it is needed. What is shown here was paid for before: nothing of it costs anything.
"""
