"""Curves of censored times of events, and reliabilities of people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from torch.special import ndtr, ndtri

from botorch_skewgp.checks import as_tensor
from botorch_skewgp.frames import Answers
from botorch_skewgp.models import SkewGP
from botorch_skewgp.observations import Numeric
from botorch_skewgp.summaries.draws import Drawing, People, Question, named_table, row_names

if TYPE_CHECKING:
    from pandas import DataFrame


@torch.no_grad()
def event_curve(
    model: SkewGP,
    answers: Answers,
    frame: DataFrame | Mapping[str, Sequence[Any]],
    times: Any,
    **drawing: Unpack[Drawing],
) -> DataFrame:
    r"""The probability that the event has happened by a time, with bands, a curve for each row of a frame.

    `P(T <= t | f) = Phi((log t - f(x)) / sigma)` in every draw of the median log time `f`; bands are of what is not
    known of `f`.

    Example::

        event_curve(model, answers, pandas.DataFrame({"dose": [0.1, 0.9]}, index=["low", "high"]), [1, 2, 4, 8])

    Args:
        model: A fitted model of the times that `read_event_times` returned.
        answers: What it returned.
        frame: A frame with the attributes, whose index names the curves.
        times: The times, positive numbers.
        drawing: Further options of `botorch_skewgp.summaries.draws.Drawing`.

    Returns:
        A data frame with columns `mean`, `lower` and `upper`, indexed by `curve` and `time`.

    Raises:
        InputDataError: If attributes are missing or times are not positive.
        UnsupportedError: If the model's numbers have a warping.
    """
    question, X = Question("event_curve", model, answers, **drawing), answers.points(frame).to(model.datapoints)
    times = as_tensor(times, "times").to(X).flatten()
    if not len(times) or not bool((times > 0).all() & times.isfinite().all()):
        raise InputDataError(f"times must be positive numbers; got {times.tolist()[:5]}.")
    likelihood = model.answering_likelihood.for_kind(Numeric)
    if getattr(likelihood, "warping", None) is not None:
        raise UnsupportedError("event_curve is for logarithms of times without a warping of their own.")
    draws = question.utilities(X, [None])[:, 0]
    scale = likelihood.latent_noise(X).reshape(1, -1, 1).sqrt()
    log_times = model.outcome_scale.standardize(times.log())
    chances = ndtr((log_times - draws.unsqueeze(-1)) / scale)  # s x n x times
    rows = [(name, float(time)) for name in row_names(frame, len(X)) for time in times]
    return question.table(chances, ["curve", "time"], rows)


def reliabilities(model: SkewGP, answers: Answers, people: People = "each", level: float = 0.9) -> DataFrame:
    r"""How reliable people are: the factor of the utility in their answers, about 1 if reliable, 0 if random.

    Intervals are of what the fit left open of the logarithm; people with thirty answers or more on average have a
    fitted reliability without an interval.

    Example::

        reliabilities(model, answers)

    Args:
        model: A fitted model with reliabilities, such as one of `item_model` with judges.
        answers: The answers that a reader returned, with the names.
        people: As for `part_worths`, of those who answered.
        level: The probability of intervals.

    Returns:
        A data frame with columns `median`, `lower` and `upper`, indexed by `person`.

    Raises:
        InputDataError: If people gave no answers.
        UnsupportedError: If the model has no reliabilities.
    """
    question = Question("reliabilities", model, answers, level)
    named = question.people(people)
    if model.judge_reliability is None:
        raise UnsupportedError("The model has no reliabilities; give SkewGP learn_judge_reliability=True.")
    judges = [judge for judge in named.values() if isinstance(judge, int)]
    if len(judges) < len(named):
        raise InputDataError("people must be people who answered; others have no reliability of their own.")
    place = torch.tensor(judges)
    median = model.judge_reliability.values.detach()[place]
    spread = model.judge_reliability.logarithm_prior.judge_variance[place].sqrt()  # of the logarithm
    end = spread * ndtri(torch.tensor((1 + question.level) / 2, dtype=torch.float64))
    columns = {"median": median, "lower": median * (-end).exp(), "upper": median * end.exp()}
    return named_table(columns, ["person"], [(name,) for name in named], question.level)
