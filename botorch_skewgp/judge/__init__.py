"""A page on which people choose the best of several pictures, sounds or texts, or say that all are bad.

`page` serves it in a browser; `rounds` are its questions and answers, kept in a file; `sources` are what is judged: the
files of a folder (`python -m botorch_skewgp.judge FOLDER` runs `__main__`) or what a function shows at points of a box.
The trials of a study or an experiment are `botorch_skewgp.optuna.JudgedTrials` and `botorch_skewgp.ax.JudgedArms`.
Needs the extra `judge`.
"""

from botorch_skewgp.judge.page import make_page, serve
from botorch_skewgp.judge.rounds import Round, Rounds, read_rounds
from botorch_skewgp.judge.sources import Designs, FolderItems

__all__ = ["Designs", "FolderItems", "Round", "Rounds", "make_page", "read_rounds", "serve"]
