"""One valid object of every kind of observation, all of four points."""

import math

import torch

from botorch_skewgp.observations import (
    AffineProbit,
    Binary,
    Censored,
    Choice,
    ChoiceOrNone,
    GradedPreference,
    LabelPreference,
    Numeric,
    Observation,
    Ordinal,
    Preference,
    Ranking,
    Slope,
    Tie,
    Validity,
    Vote,
)

INF = math.inf
EYE = torch.eye(2, dtype=torch.float64)

VALID: dict[str, Observation] = {
    "numeric": Numeric([0.5, 1.5], noise=[0.1, 0.2], index=torch.tensor([3, 1])),
    "binary": Binary([1, 0], index=torch.tensor([3, 1])),
    "ordinal": Ordinal([2, 0], 3, index=torch.tensor([3, 1])),
    "censored": Censored([-INF, 0.0], [1.0, INF], index=torch.tensor([3, 1])),
    "preference": Preference(torch.tensor([[3, 1], [0, 1]])),
    "graded duels": Preference(torch.tensor([[3, 1], [0, 1]]), strength=[1, 0]),
    "graded duel of its name": GradedPreference(torch.tensor([[3, 1], [0, 1]]), strength=[1, 0], num_strengths=3),
    "vote": Vote(torch.tensor([[3, 1], [0, 1], [2, 0]]), ["second", "both bad", "tie"]),
    "tie": Tie(torch.tensor([[3, 1]])),
    "choice": Choice(torch.tensor([[3, 1, 0], [1, 2, -1]])),
    "choice or none": ChoiceOrNone(torch.tensor([[3, 1, 0], [1, -1, -1]]), [False, True]),
    "ranking": Ranking(torch.tensor([[3, 1, 0], [1, 2, -1]])),
    "label preference": LabelPreference(torch.tensor([[0, 2], [1, 0]]), 3, index=torch.tensor([3, 1])),
    "validity": Validity([True, False], index=torch.tensor([3, 1])),
    "slope": Slope([0, 0], [1, -1], index=torch.tensor([3, 1])),
    "affine": AffineProbit(EYE, 0.0, EYE, index=torch.tensor([3, 1])),
}
