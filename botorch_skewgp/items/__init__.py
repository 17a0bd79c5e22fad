"""Votes between items: models with effects of items and features, leaderboards, and the next votes to ask for.

`votes` reads data frames, `effects` are what utilities consist of, `model` builds a SkewGP of items, `leaderboard` has
ranks with their uncertainty from joint draws, and `next_votes` chooses pairs and has a stopping rule.
"""

from botorch_skewgp.items.leaderboard import leaderboard, win_probabilities
from botorch_skewgp.items.model import add_items, add_votes, feature_share, item_model
from botorch_skewgp.items.next_votes import Verdict, next_votes, verdict
from botorch_skewgp.items.votes import read_votes

__all__ = [
    "Verdict",
    "add_items",
    "add_votes",
    "feature_share",
    "item_model",
    "leaderboard",
    "next_votes",
    "read_votes",
    "verdict",
    "win_probabilities",
]
