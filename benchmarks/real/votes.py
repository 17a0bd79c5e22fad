"""Votes between items: generated with known truth, as no wheel ships any.

Forty items differ by what four of eight features say and by an effect of their own; three judges vote, one of whom
answers at random. The models know who voted only where their names say so.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import torch
from botorch.fit import fit_gpytorch_mll
from torch import Tensor

from benchmarks.real.data import VOTES, Choices
from benchmarks.real.rivals import Predictions, minimise, of_outcomes
from botorch_skewgp.items import item_model
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Preference

NUM_ITEMS, NUM_FEATURES, NUM_VOTES, NUM_JUDGES = 40, 8, 1200, 3
PENALTY = 1e-2


def votes() -> Choices:
    """The votes; the attributes of an option are the item's number and its features."""
    features, _, shown, probability, judge, uniform = _generated()
    points = torch.cat([shown.double().unsqueeze(-1), features[shown]], dim=-1)
    columns = ("item", *(f"feature {i}" for i in range(NUM_FEATURES)))
    available = torch.ones(NUM_VOTES, 2, dtype=torch.bool)
    return Choices(VOTES, columns, points, available, (uniform > probability).long(), judge)


def _generated() -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Features, utilities, pairs, the probability of the first, who voted, and a uniform number for each vote."""
    generator = torch.Generator().manual_seed(0)
    features = torch.rand(NUM_ITEMS, NUM_FEATURES, dtype=torch.float64, generator=generator)
    own = torch.randn(NUM_ITEMS, dtype=torch.float64, generator=generator)
    bump = (-((features[:, 2:4] - 0.6) ** 2).sum(-1) / 0.18).exp()
    utility = 0.4 * own + 2.2 * (features[:, 0] - features[:, 1]) + 2.0 * bump
    first = torch.randint(NUM_ITEMS, (NUM_VOTES,), generator=generator)
    second = (first + torch.randint(1, NUM_ITEMS, (NUM_VOTES,), generator=generator)) % NUM_ITEMS
    judge = torch.arange(NUM_VOTES) % NUM_JUDGES
    uniform = torch.rand(NUM_VOTES, dtype=torch.float64, generator=generator)
    shown = torch.stack([first, second], dim=-1)
    return features, utility, shown, _truth_of(utility, shown, judge), judge, uniform


def _truth_of(utility: Tensor, shown: Tensor, judge: Tensor) -> Tensor:
    """The probability that the first item wins: the noise of an item has a variance of one."""
    gap = utility[shown[:, 0]] - utility[shown[:, 1]]
    return torch.special.ndtr(torch.where(judge == NUM_JUDGES - 1, 0.0, gap) / 2**0.5)


def _shown(data: Choices) -> Tensor:
    return data.points[..., 0].long()


def _wins(data: Choices) -> Tensor:
    shown, chosen = _shown(data), data.chosen.unsqueeze(-1)
    return torch.cat([shown.gather(-1, chosen), shown.gather(-1, 1 - chosen)], dim=-1)


def _said(first: Tensor, test: Choices) -> Predictions:
    return of_outcomes(torch.stack([first, 1 - first], dim=-1), test.chosen)


def truth(known: Choices, test: Choices) -> Predictions:
    """What is true of the test votes: no model can expect fewer nats."""
    return _said(_truth_of(_generated()[1], _shown(test), test.person), test)


def bradley_terry(known: Choices, test: Choices) -> Predictions:
    """Bradley and Terry's model by maximum likelihood: a conditional logit whose attributes are the items."""
    wins = _wins(known)
    utility = minimise(
        lambda u: -torch.nn.functional.logsigmoid(u[wins[:, 0]] - u[wins[:, 1]]).sum(), torch.zeros(NUM_ITEMS).double()
    )[0]
    return _logistic(utility, test)


def choix(known: Choices, test: Choices) -> Predictions:
    """The same model in choix, with a penalty."""
    import choix

    return _logistic(torch.as_tensor(choix.opt_pairwise(NUM_ITEMS, _wins(known).tolist(), alpha=PENALTY)), test)


def _logistic(utility: Tensor, test: Choices) -> Predictions:
    shown = _shown(test)
    return _said(torch.sigmoid(utility[shown[:, 0]] - utility[shown[:, 1]]), test)


def items(known: Choices, test: Choices, features: bool = False, judges: bool = False) -> Predictions:
    """Our model of items, perhaps with their features, and perhaps told who voted."""
    wins = Preference(_wins(known), judge=known.person if judges else None)
    model = item_model(NUM_ITEMS, wins, _generated()[0] if features else None)
    fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
    first, shown = torch.zeros(len(test), dtype=torch.float64), _shown(test)
    for judge in test.person.unique().tolist():
        of_judge = test.person == judge
        X = model.datapoints[shown[of_judge]]
        with torch.no_grad():
            first[of_judge] = model.predictive(X, judge=judge if judges else None).probs
    return _said(first, test)


MODELS: dict[str, Callable[..., Predictions]] = {
    "truth": truth,
    "conditional logit": bradley_terry,
    **({"choix": choix} if find_spec("choix") is not None else {}),
    "SkewGP, items": items,
    "SkewGP, items, features": lambda known, test: items(known, test, features=True),
    "SkewGP, items, features, judges": lambda known, test: items(known, test, features=True, judges=True),
}
