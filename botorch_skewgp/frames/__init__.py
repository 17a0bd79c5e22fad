"""Data frames as points and observations, and columns of history.

`columns` reads columns, `answers` has what every reader returns, `choices`, `grades`, `rankings` and `event_times` a
reader each, and `habits` adds what people chose before. A dictionary of columns is as good as a data frame of pandas.
Votes between items are read by `botorch_skewgp.items.votes`.
"""

from botorch_skewgp.frames.answers import Answers
from botorch_skewgp.frames.choices import read_choices
from botorch_skewgp.frames.event_times import read_event_times
from botorch_skewgp.frames.grades import read_grades
from botorch_skewgp.frames.habits import habits
from botorch_skewgp.frames.rankings import read_rankings

__all__ = ["Answers", "habits", "read_choices", "read_event_times", "read_grades", "read_rankings"]
