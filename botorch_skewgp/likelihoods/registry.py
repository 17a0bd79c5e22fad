r"""The default likelihood of each kind of observation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from itertools import chain
from typing import Any

from botorch.exceptions.errors import InputDataError

from botorch_skewgp.likelihoods.base import RowLikelihood
from botorch_skewgp.likelihoods.defaults import Context
from botorch_skewgp.likelihoods.functionals import ProbitAffineLikelihood, SlopeLikelihood
from botorch_skewgp.likelihoods.mixed import MixedLikelihood
from botorch_skewgp.likelihoods.numeric import NumericLikelihood
from botorch_skewgp.likelihoods.ordinal import OrdinalLikelihood
from botorch_skewgp.likelihoods.preference import PreferenceLikelihood
from botorch_skewgp.likelihoods.probit import LabelPreferenceLikelihood, ProbitLikelihood, ValidityLikelihood
from botorch_skewgp.likelihoods.votes import VoteLikelihood
from botorch_skewgp.observations import GradedPreference, LabelPreference, Observation, Ordinal, Preference, Vote
from botorch_skewgp.observations.duels import BUTTONS

Factory = Callable[[Any, Context], RowLikelihood]


def _preference_likelihood(observation: Observation, context: Context) -> RowLikelihood:
    steps = [entry.num_strengths for entry in context.observations if isinstance(entry, Preference)]
    least = 2 if GradedPreference in context.kinds else 1
    num_strengths = max([step for step in steps if step is not None], default=least)
    if Vote in context.kinds:
        buttons = {button for entry in context.observations if isinstance(entry, Vote) for button in entry.buttons}
        return VoteLikelihood(buttons or BUTTONS, num_strengths=num_strengths)
    return PreferenceLikelihood(num_strengths=num_strengths)


_FACTORIES: dict[type[Observation], Factory] = {
    **dict.fromkeys(VoteLikelihood.observation_types, _preference_likelihood),
    Ordinal: lambda observation, context: OrdinalLikelihood(observation.num_grades),
    LabelPreference: lambda observation, context: LabelPreferenceLikelihood(observation.num_labels),
}
for _plain in (NumericLikelihood, ProbitLikelihood, ValidityLikelihood, ProbitAffineLikelihood, SlopeLikelihood):
    _FACTORIES |= dict.fromkeys(_plain.observation_types, lambda observation, context, plain=_plain: plain())


def register_default_likelihood(kind: type[Observation], factory: Factory) -> None:
    r"""Register the default likelihood of a kind of observation.

    Args:
        kind: A class of observations: a dataclass with a field named by its class attribute `index_field` (`"index"`
            unless set), which holds the rows of `train_X`.
        factory: Makes the likelihood from the first observation object of the kind (`None` if there is none yet) and
            the `Context`.

    Raises:
        InputDataError: If `kind` is no dataclass of that sort, or `factory` no function.

    Example:
        >>> class Guess(Binary): ...
        >>> register_default_likelihood(Guess, lambda observation, context: ProbitLikelihood(slip=0.05))
    """
    if not (isinstance(kind, type) and issubclass(kind, Observation)):
        raise InputDataError(f"kind must be a subclass of Observation; got {kind!r}.")
    if kind.index_field not in {entry.name for entry in fields(kind)}:
        raise InputDataError(
            f"{kind.__name__} has no field {kind.index_field!r}, the rows of train_X that an observation refers to. "
            "Name that field so, or set the class attribute index_field, and decorate the class with "
            "@dataclass(frozen=True, eq=False)."
        )
    if isinstance(factory, RowLikelihood) or not callable(factory):
        raise InputDataError(
            f"factory must be a function from an observation and its Context to a likelihood; got {factory!r}."
        )
    _FACTORIES[kind] = factory


def default_likelihood(
    observations: Sequence[Observation],
    kinds: Sequence[type[Observation]] = (),
    factories: Mapping[type[Observation], Factory] | None = None,
    given: RowLikelihood | None = None,
) -> RowLikelihood:
    r"""The likelihood with default parameters for observations of given kinds.

    Without numbers, the noise variance of labels, grades and comparisons is fixed at 1, the unit of the latent
    function. With numbers it is learned, its logarithm with a N(-1, 1) prior, and so is the level of labels and grades.

    Args:
        observations: The observations.
        kinds: Further kinds that the likelihood takes, without observations so far.
        factories: Factories that replace the registered ones, by kind.
        given: A likelihood for some of the kinds, returned as it is if it takes all; it is not changed.

    Raises:
        InputDataError: If a kind has no default likelihood, or the given one takes none of the observations.
    """
    known = {**_FACTORIES, **(factories or {})}
    examples: dict[type[Observation], Observation | None] = {}
    for entry in observations:
        examples.setdefault(type(entry), entry)
    examples.update({kind: None for kind in kinds if kind not in examples})
    if given is not None and not any(issubclass(kind, given.observation_types) for kind in examples):
        return given if not examples else given.for_kind(next(iter(examples)))  # which raises
    context = Context(tuple(examples), tuple(observations))
    likelihoods: list[RowLikelihood] = []
    for kind, example in examples.items():
        if any(issubclass(kind, likelihood.observation_types) for likelihood in likelihoods):
            continue
        if given is not None and issubclass(kind, given.observation_types):
            likelihoods.append(given)
            continue
        factory = next((known[base] for base in kind.__mro__ if base in known), None)
        if factory is None:
            raise InputDataError(
                f"{kind.__name__} has no default likelihood; pass one, or register it with register_default_likelihood."
            )
        likelihoods.append(factory(example, context))
    if not likelihoods:
        return NumericLikelihood()
    if len(likelihoods) == 1:
        likelihood = likelihoods[0]
    else:
        parts = ([*one.likelihoods] if isinstance(one, MixedLikelihood) else [one] for one in likelihoods)
        likelihood = MixedLikelihood(*chain.from_iterable(parts))
    return likelihood.resolved_beside(context) if given is None else likelihood
