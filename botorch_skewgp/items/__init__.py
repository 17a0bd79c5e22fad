"""Votes between items: an effect for each item beside its features' effect, leaderboards, and the next votes.

`votes` reads data frames, `model` makes a SkewGP of items, `leaderboard` tells ranks with their uncertainty, from joint
draws (`draws`), and `next_votes` chooses pairs of a pool and says when to stop.
"""

from botorch_skewgp.items.leaderboard import leaderboard, win_probabilities
from botorch_skewgp.items.model import (
    add_items,
    add_votes,
    default_item_covar_module,
    default_item_judge_covar_module,
    feature_share,
    item_model,
    item_points,
)
from botorch_skewgp.items.next_votes import NextVotes, Verdict, next_votes, verdict
from botorch_skewgp.items.votes import Votes, read_votes

__all__ = [
    "NextVotes",
    "Verdict",
    "Votes",
    "add_items",
    "add_votes",
    "default_item_covar_module",
    "default_item_judge_covar_module",
    "feature_share",
    "item_model",
    "item_points",
    "leaderboard",
    "next_votes",
    "read_votes",
    "verdict",
    "win_probabilities",
]
