"""Answers as data frames: means and intervals with names, computed of joint draws of utilities.

`tastes` has part-worths, tastes and willingness to pay, `choices` shares, outcomes of meetings, best items and
predictions of many people, `segments` people of alike tastes, `events` curves of times and reliabilities; `draws` makes
the draws and tables. All take a fitted model and the answers that a reader of `botorch_skewgp.frames` returned.
"""

from botorch_skewgp.summaries.choices import outcome_probabilities, predictions, shares, top_items
from botorch_skewgp.summaries.events import event_curve, reliabilities
from botorch_skewgp.summaries.segments import Segments, segments
from botorch_skewgp.summaries.tastes import part_worths, tastes, willingness_to_pay

__all__ = [
    "Segments",
    "event_curve",
    "outcome_probabilities",
    "part_worths",
    "predictions",
    "reliabilities",
    "segments",
    "shares",
    "tastes",
    "top_items",
    "willingness_to_pay",
]
