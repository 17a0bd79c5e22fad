r"""The likelihood of grades, with learned or given cut-points.

.. [Benavoli2021unified] Benavoli, Azzimonti, Piga. Machine Learning 110, 2021.
.. [Samejima1969estimation] Samejima. Estimation of latent ability using a response pattern of graded scores. 1969.
.. [Chu2005ordinal] W. Chu, Z. Ghahramani. Gaussian processes for ordinal regression. JMLR 6, 2005.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.constraints import Positive
from gpytorch.priors import Prior
from torch import Tensor

from botorch_skewgp.checks import MAX_CATEGORIES, as_count, as_position, as_tensor, check_parts
from botorch_skewgp.likelihoods.defaults import GAP_PRIOR, STRETCH_SPREAD
from botorch_skewgp.likelihoods.outcome_scale import UNIT, OutcomeScale
from botorch_skewgp.likelihoods.parameters import JudgeParameter, PositiveParameter
from botorch_skewgp.likelihoods.probit import NoisyValueLikelihood
from botorch_skewgp.observations import Observation, Ordinal
from botorch_skewgp.observations.observation import Kind
from botorch_skewgp.parameters import LogarithmPrior
from botorch_skewgp.rows import Reading, Rows


class OrdinalLikelihood(NoisyValueLikelihood):
    r"""`P(grade = j) = Phi((b_j - f(x)) / s) - Phi((b_{j-1} - f(x)) / s)` with `s = sqrt(noise)`.

    The interval form of [Benavoli2021unified]_, equation (3), after [Chu2005ordinal]_. Of learned cut-points the middle
    one (of the lower two, if their number is even) is `shift`: zero, as a shift of all can go into the mean, unless
    numbers fix the level of the function. A judge who uses the whole scale, or only its middle, may have a stretch: the
    factor of the distances between all cut-points and the middle one.

    Args:
        num_grades: The number of grades.
        cutpoints: Given cut-points `b_1 < ... < b_{num_grades - 1}`, in units of the outcome; learned if `None`.
        gap_prior: A prior on the gaps between cut-points; for learned ones by default N(0, 1) of their
            logarithms, which keeps unused grades possible.
        learn_shift: Whether the middle one of learned cut-points is a parameter to fit; by default beside numbers.
        shift_prior: A prior on it, in units of the latent function; for a learned one by default N(0, 2^2).
        stretch: The stretch of each of two or more judges. 1 for all if `None`.
        learn_stretch: Whether stretches are parameters to fit: factors around a common one, which is fixed, with
            normal logarithms, whose spread of 0.35 `fit_skew_gp` learns. Predictions for new judges are averages over
            theirs; of given stretches they have the average.
        num_items: The number of items of a questionnaire that have learned gaps between cut-points of their own, as in
            the graded response model ([Samejima1969estimation]_): the item of each grade is `Ordinal(item=)`, that of
            predictions `for_item`. `None` for the same cut-points everywhere.
        kwargs: The other arguments are those of `NoisyValueLikelihood`.

    Raises:
        InputDataError: As in the base class, also if given cut-points shall shift, or be those of some items only.

    Example:
        >>> likelihood = OrdinalLikelihood(5, stretch=torch.ones(12), learn_stretch=True)  # twelve judges
    """

    observation_types = (Ordinal,)
    gaps = PositiveParameter()
    stretch = JudgeParameter()
    _item: int | None = None  # of new grades

    def __init__(
        self,
        num_grades: int,
        cutpoints: Tensor | None = None,
        *args: Any,
        gap_prior: Prior | None = None,
        learn_shift: bool | None = None,
        shift_prior: Prior | None = None,
        stretch: Tensor | None = None,
        learn_stretch: bool = False,
        num_items: int | None = None,
        **kwargs: Any,
    ) -> None:
        num_grades = as_count(num_grades, "num_grades", most=MAX_CATEGORIES)
        check_parts(gap_prior=(gap_prior, Prior))
        super().__init__(*args, **kwargs)
        self.num_grades = num_grades
        self.num_items = None if num_items is None else as_count(num_items, "num_items")
        if num_items is not None and cutpoints is not None:
            raise InputDataError("Given cut-points are those of all items; leave num_items out.")
        learn = cutpoints is None
        middle = self._middle
        points = torch.arange(num_grades - 1) - middle if cutpoints is None else as_tensor(cutpoints, "cutpoints")
        points = points.to(torch.float64).to(self.noise.device)  # the module moves as one
        if points.shape != (num_grades - 1,) or not points.isfinite().all() or (points.diff() <= 0).any():
            raise InputDataError(
                f"cutpoints must be {num_grades - 1} finite increasing numbers, one fewer than grades; got "
                f"{points.tolist()}."
            )
        self.register_buffer("are_given", torch.tensor(not learn))
        self._register_shift(None if learn else float(points[middle]), learn_shift, shift_prior)
        if gap_prior is None and learn and num_grades > 2:
            gap_prior = LogarithmPrior(*GAP_PRIOR)
        gaps = points.diff() if num_items is None else points.diff().expand(num_items, -1)
        self._register_positive("gaps", gaps, learn, gap_prior, Positive(), gaps.shape)
        self._has_stretch = stretch is not None
        if stretch is None and not learn_stretch:
            return
        if stretch is None or as_tensor(stretch, "stretch").numel() < 2:
            raise InputDataError("stretch must hold a value for each of two or more judges; one is part of the gaps.")
        self._register_by_judge("stretch", stretch, learn_stretch, STRETCH_SPREAD)
        self.raw_stretch.requires_grad_(False)

    @property
    def cutpoints(self) -> Tensor:
        """The cut-points, increasing; shape `num_grades - 1`, or `num_items x (num_grades - 1)`."""
        steps = torch.nn.functional.pad(self.gaps.cumsum(-1), (1, 0))
        return self.shift + steps - steps[..., self._middle : self._middle + 1]

    def for_item(self, item: int) -> Self:
        """The likelihood of grades of an item, by its number; `InputDataError` if there is no such item."""
        if self.num_items is None:
            return self
        if as_position(item, self.num_items) != item:
            raise InputDataError(f"item must be a number from 0 to {self.num_items - 1}; got {item!r}.")
        return self._but(_item=item)

    @property
    def _middle(self) -> int:
        """The number of the middle cut-point."""
        return (self.num_grades - 2) // 2

    @property
    def parameters_by_judge(self) -> list[str]:
        """Slips and stretches, as far as they have a value for each judge."""
        return super().parameters_by_judge + (["stretch"] if self._has_stretch else [])

    def _latent_cutpoints(
        self, like: Tensor, scale: OutcomeScale, judge: Tensor | None = None, item: Tensor | None = None
    ) -> Tensor:
        """The cut-points in units of the latent function, `C`; those of `m` answers of judges or items, `m x C`."""
        cutpoints = self.cutpoints.to(like)
        cutpoints = scale.standardize(cutpoints) if self.are_given else cutpoints
        if item is not None:
            cutpoints = cutpoints[item.to(cutpoints.device)]
        elif self.num_items is not None:
            cutpoints = cutpoints.mean(-2) if self._item is None else cutpoints[self._item]
        if not self._has_stretch:
            return cutpoints
        middle = cutpoints[..., self._middle : self._middle + 1]
        factor = self._of_judges("stretch", like, judge)
        return middle + (factor if judge is None else factor.unsqueeze(-1)) * (cutpoints - middle)

    def _item_of(self, observation: Ordinal) -> Tensor | None:
        """The item of each grade, where items have cut-points of their own."""
        if self.num_items is None:
            return None
        if observation.item is None:
            raise InputDataError("Items have cut-points of their own; name the item of each grade, Ordinal(item=).")
        if len(observation.item) and int(observation.item.max()) >= self.num_items:
            raise InputDataError(f"There are {self.num_items} items; got item {int(observation.item.max())}.")
        return observation.item

    def reading(self, kind: Kind, like: Tensor, scale: OutcomeScale = UNIT, num_points: int | None = None) -> Reading:
        """`f(x) + v` between the cut-points of the grade; given ones are in units of the outcome."""
        return Reading.at_point(self._latent_cutpoints(like, scale), self.noise, self._slips(self.num_grades, like))

    def rows(self, observation: Observation, like: Tensor, scale: OutcomeScale = UNIT) -> Rows:
        """Each grade, between the cut-points of its judge."""
        rows = super().rows(observation, like, scale)
        judge, item = observation.judge if self._has_stretch else None, self._item_of(observation)  # type: ignore[arg-type]
        if judge is None and item is None:
            return rows
        cutpoints = self._latent_cutpoints(like, scale, judge, item)
        end = torch.full_like(cutpoints[:, :1], torch.inf)
        ends = torch.cat([-end, cutpoints, end], dim=-1)
        grade = self.answers(observation)[1].to(ends.device).unsqueeze(-1)  # type: ignore[arg-type]
        lower, upper = (ends.gather(-1, grade + above).squeeze(-1) for above in (0, 1))
        return replace(rows, lower=lower, upper=upper).of_parameters(judge).of_parameters(item)

    def answers(self, observation: Ordinal) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """Each point, and its grade; raises `InputDataError` for another number of grades."""
        if observation.num_grades != self.num_grades:
            raise InputDataError(
                f"The observations have {observation.num_grades} grades, the likelihood {self.num_grades}; give "
                f"OrdinalLikelihood({observation.num_grades})."
            )
        return observation.index.unsqueeze(-1), observation.grades
