"""Data frames in long format as points and observations, and columns of history.

`columns` reads columns, `answers` choices and grades, and adds what people chose before. A dictionary of columns is as
good as a data frame of pandas. Votes between items are read by `botorch_skewgp.items.votes`.
"""

from botorch_skewgp.frames.answers import Answers, habits, read_choices, read_grades

__all__ = ["Answers", "habits", "read_choices", "read_grades"]
