r"""What a model is given: checks, defaults that depend on it, and conversions from what BoTorch passes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.exceptions.warnings import InputDataWarning, _get_single_precision_warning
from botorch.models.transforms.input import InputTransform
from botorch.models.transforms.outcome import OutcomeTransform, Standardize
from botorch.utils.containers import SliceContainer
from botorch.utils.datasets import MultiTaskDataset, RankingDataset, SupervisedDataset
from torch import Tensor

from botorch_skewgp.likelihoods import LabelPreferenceLikelihood, OutcomeScale, RowLikelihood
from botorch_skewgp.models.skew_prior import SkewPrior
from botorch_skewgp.observations import LabelPreference, Numeric, Observation, Preference, Ranking, Tie


def transformed_dim(input_transform: InputTransform, train_X: Tensor) -> int:
    """The number of columns that an input transform makes of `train_X`."""
    with torch.no_grad():
        return input_transform.to(train_X)(train_X).shape[-1]


def move(t: Tensor, like: Tensor) -> Tensor:
    """A tensor on the device of another, and of its dtype if it is floating point."""
    return t.to(like) if t.is_floating_point() else t.to(like.device)


def as_sequence(observations: Observation | Sequence[Observation] | None) -> tuple[Observation, ...]:
    """Observations as a tuple; raises if something is not an observation object."""
    if observations is None:
        return ()
    observations = (observations,) if isinstance(observations, Observation) else tuple(observations)
    for entry in observations:
        if not isinstance(entry, Observation):
            raise InputDataError(
                "observations must be observation objects such as Preference(pairs); got "
                f"{type(entry).__name__}. Wrap the data in the class of its kind."
            )
    return observations


def check_train_X(X: Tensor, warn: bool = True) -> None:
    """Raise unless points are finite `n x d` floating point numbers; warn of single precision as BoTorch does."""
    if not isinstance(X, Tensor) or not X.is_floating_point():
        kind = X.dtype if isinstance(X, Tensor) else type(X).__name__
        raise InputDataError(f"train_X must be a floating point tensor, best of dtype torch.double; got {kind}.")
    if X.ndim != 2:
        raise InputDataError(f"train_X must be n x d; got shape {tuple(X.shape)}.")
    if not X.isfinite().all():
        where = (~X.isfinite()).any(-1).nonzero().squeeze(-1)[:5].tolist()
        raise InputDataError(f"train_X contains NaN or infinite values in rows {where}; remove or repair these.")
    if warn and X.dtype == torch.float32:
        warnings.warn(_get_single_precision_warning(str(X.dtype)), InputDataWarning, stacklevel=3)


def check_observations(observations: Sequence[Observation], X: Tensor) -> None:
    """Raise if observations refer to rows that the points do not have."""
    for entry in observations:
        if entry.num_points_needed > X.shape[-2]:
            raise InputDataError(
                f"{type(entry).__name__} refers to row {entry.num_points_needed - 1} of train_X, which has "
                f"{X.shape[-2]} rows only (counted from 0)."
            )


def as_observations(
    Y: Tensor | Observation | Sequence[Observation], noise: Tensor | None = None
) -> tuple[Observation, ...]:
    """Observations from what BoTorch's functions pass: numbers, or integer pairs for duels."""
    if not isinstance(Y, Tensor):
        if noise is not None:
            raise InputDataError("Give the noise inside Numeric(values, noise) when Y holds observation objects.")
        return as_sequence(Y)
    if not Y.is_floating_point():
        return (Preference(Y),)
    return (Numeric(Y, noise),)


def from_dataset(dataset: SupervisedDataset) -> tuple[Tensor, tuple[Observation, ...]]:
    r"""Points and observations of a BoTorch dataset: numbers, or rankings of two or more points.

    Equal ranks of two points are a tie; in longer rankings points of equal rank are not compared.
    """
    if isinstance(dataset, MultiTaskDataset):
        raise UnsupportedError("SkewGP has no tasks; give it the data of one task, or a kernel over the task column.")
    if dataset.Y.shape[-1] != 1 and not isinstance(dataset, RankingDataset):
        raise UnsupportedError(
            f"SkewGP models one outcome; got {dataset.outcome_names}. Build one model for each and join them in a "
            "ModelList."
        )
    if not isinstance(dataset, RankingDataset):
        noise = None if dataset.Yvar is None else dataset.Yvar.squeeze(-1)
        return dataset.X, (Numeric(dataset.Y.squeeze(-1), noise),)
    container = dataset._X
    assert isinstance(container, SliceContainer)
    ranks, order = dataset.Y.sort(dim=-1, stable=True)
    items = container.indices.gather(-1, order)
    if items.shape[-1] > 2:
        return container.values, (Ranking(items, ranks),)
    tied = ranks[:, 0] == ranks[:, 1]
    kinds = (Preference(items[~tied]), Tie(items[tied]))
    return container.values, tuple(entry for entry in kinds if entry.pairs.shape[0])


def count_outputs(observations: Sequence[Observation], likelihood: RowLikelihood | None) -> int:
    """One latent function, or one per label."""
    counts = {entry.num_labels if isinstance(entry, LabelPreference) else 1 for entry in observations}
    if isinstance(likelihood, LabelPreferenceLikelihood):
        counts.add(likelihood.num_labels)
    if len(counts) > 1:
        raise InputDataError(
            "LabelPreference observations have one latent function per label; they cannot share a model with other "
            "kinds of observations, or with another number of labels."
        )
    return counts.pop() if counts else 1


def check_skew_prior(skew_prior: SkewPrior | None, dim: int, num_outputs: int) -> None:
    """Raise if a skew prior does not fit the inputs or outputs of a model."""
    if skew_prior is None:
        return
    if num_outputs > 1:
        raise UnsupportedError(
            "A skew prior is for models with one latent function; leave it out for label preferences."
        )
    if skew_prior.pseudo_points.shape[-1] != dim:
        raise InputDataError(
            f"The skew prior's pseudo_points have {skew_prior.pseudo_points.shape[-1]} columns; the (transformed) "
            f"inputs have {dim}."
        )


def learn_outcome_scale(observations: Sequence[Observation], transform: OutcomeTransform | None) -> OutcomeScale:
    """Learn the standardisation from the numbers."""
    if transform is None:
        return OutcomeScale()
    if type(transform) is not Standardize:
        raise UnsupportedError(
            "outcome_transform must be Standardize(m=1): other transforms are not affine, so that comparisons would "
            "lose their meaning. Transform the numbers before building the model instead; got "
            f"{type(transform).__name__}."
        )
    values = [entry.values for entry in observations if isinstance(entry, Numeric)]
    if not values:
        return OutcomeScale()
    transform.train()
    transform(torch.cat(values).unsqueeze(-1))
    transform.eval()
    return OutcomeScale(float(transform.means), float(transform.stdvs))
