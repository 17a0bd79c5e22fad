"""What is judged without a study: the files of a folder, and what a function shows at points of a box."""

from __future__ import annotations

import math
import mimetypes
import os
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from botorch.exceptions.errors import InputDataError
from botorch.fit import fit_gpytorch_mll
from botorch.models.transforms.input import Normalize
from botorch.utils.sampling import draw_sobol_samples
from torch import Tensor

from botorch_skewgp.acquisition import next_choice
from botorch_skewgp.checks import as_number
from botorch_skewgp.hosts.data import Observed, as_rows, observed
from botorch_skewgp.hosts.quiet import suppress_irrelevant_warnings
from botorch_skewgp.hosts.records import Judgement
from botorch_skewgp.items import item_model
from botorch_skewgp.items.effects import item_points
from botorch_skewgp.judge.rounds import Shown
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import SkewGP

MEDIA = ("image", "audio", "video", "text")
FIRST_ANSWERS = 2  # rounds of which nothing is known


def media_type_of(name: str | os.PathLike[str]) -> str | None:
    """The media type of a file that the page can show, by its name; `None` for others."""
    guessed = mimetypes.guess_type(name)[0] or ""
    return guessed if guessed.startswith(MEDIA) else None


class KeepsNothing:
    """A source whose answers are in the file of rounds alone."""

    def report(self, key: str, judgement: Judgement) -> None:
        """Nothing."""

    def withdraw(self, key: str) -> None:
        """Nothing."""


class FolderItems(KeepsNothing):
    r"""The pictures, sounds, videos and texts in a folder, without those below it; each has a utility of its own.

    Example::

        items = FolderItems("pictures")
        answers = [entry.judgement for entry in read_rounds("pictures/answers.json") if entry.is_answered]
        leaderboard(items.model(answers), items.names)

    Args:
        folder: The folder.

    Raises:
        InputDataError: If the folder has fewer than two such files.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        files = [entry for entry in self._folder.iterdir() if entry.is_file()] if self._folder.is_dir() else []
        self.names = sorted(entry.name for entry in files if not entry.name.startswith(".") and media_type_of(entry))
        if len(self.names) < 2:
            raise InputDataError(f"{folder} must be a folder with two pictures, sounds, videos or texts at least.")

    def __contains__(self, item: Any) -> bool:
        """Whether an item is one of the files."""
        return item in self.names

    def show(self, item: str) -> Shown:
        """The file."""
        return self._folder / item

    def model(self, answers: Sequence[Judgement]) -> SkewGP:
        """The fitted model of the answers, whose points are the files in the order of their names."""
        X = item_points(torch.arange(len(self.names)))
        known = _observed(X, answers, dict(zip(self.names, range(len(X)), strict=True)))
        return fitted(
            item_model(len(X), [entry.at_columns(lambda i, by: known.rows[i]) for entry in known.observations])
        )

    def ask(self, num_shown: int, answers: Sequence[Judgement], pending: Sequence[Sequence[Any]]) -> list[str]:
        """Those shown least often in the first rounds, then `next_choice` of all."""
        num_shown = min(num_shown, len(self.names))
        if len(answers) < FIRST_ANSWERS:
            times = Counter(item for entry in answers for item in entry.items)
            times.update(item for entry in pending for item in entry)
            order = torch.randperm(len(self.names), generator=torch.Generator().manual_seed(0)).tolist()
            return sorted((self.names[k] for k in order), key=times.__getitem__)[:num_shown]
        points = {name: torch.tensor([float(k)]).double() for k, name in enumerate(self.names)}
        waiting = [torch.stack([points[name] for name in entry]) for entry in pending]
        model = self.model(answers)
        found = _next_choice(model, num_shown, waiting, len(answers), X_candidates=torch.stack([*points.values()]))
        return [self.names[int(k)] for k in found.flatten()]


class Designs(KeepsNothing):
    r"""What a function shows at points of a box, such as a picture with some exposure and warmth.

    For whole numbers, categories and constraints take a study or an experiment.

    Example::

        designs = Designs({"exposure": (0.3, 3.0), "warmth": (-1.0, 1.0)}, show=picture)
        serve(designs, "answers.json")
        designs.best([entry.judgement for entry in read_rounds("answers.json") if entry.is_answered])

    Args:
        ranges: The lower and the upper bound of each argument of the function by its name.
        show: The function. It returns the path of a file, a text, or the content of a file with a picture or a sound,
            as `bytes`; it is called once at a point, by one thread at a time.

    Raises:
        InputDataError: If ranges are not bounds by name.
    """

    def __init__(self, ranges: Mapping[str, tuple[float, float]], show: Callable[..., Shown]) -> None:
        if not isinstance(ranges, Mapping) or not ranges:
            raise InputDataError(f"ranges must be a lower and an upper bound for each argument; got {ranges!r}.")
        ends = []
        for name, pair in ranges.items():
            if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
                raise InputDataError(f"The range of {name!r} must be a lower and an upper bound; got {pair!r}.")
            low, high = (as_number(end, f"A bound of {name!r}") for end in pair)
            if not low < high:
                raise InputDataError(f"The lower bound of {name!r} must be below the upper one; got {pair!r}.")
            ends.append((low, high))
        self._names, self._show = list(ranges), show
        self.bounds = torch.tensor(ends).double().mT
        self._turn, self._made = threading.Lock(), dict[tuple[float, ...], Shown]()

    def __contains__(self, item: Any) -> bool:
        """Whether an item is a point of the box."""
        if not isinstance(item, tuple) or len(item) != len(self._names):
            return False
        low, high = self.bounds.tolist()
        return all(type(x) is float and a <= x <= b for a, x, b in zip(low, item, high, strict=True))

    def show(self, item: tuple[float, ...]) -> Shown:
        """What the function returns."""
        with self._turn:
            if item not in self._made:
                self._made[item] = self._show(**self.arguments(item))
            return self._made[item]

    def arguments(self, item: Sequence[float]) -> dict[str, float]:
        """A point by the names of the arguments."""
        return dict(zip(self._names, item, strict=True))

    def model(self, answers: Sequence[Judgement]) -> SkewGP:
        """The fitted model of the answers, in units of the arguments."""
        items = list(dict.fromkeys(item for entry in answers for item in entry.items))
        known = _observed(torch.tensor(items).double(), answers, {item: k for k, item in enumerate(items)})
        scaled = Normalize(self.bounds.shape[-1], bounds=self.bounds)
        return fitted(SkewGP(known.X, known.observations, input_transform=scaled))

    def ask(
        self, num_shown: int, answers: Sequence[Judgement], pending: Sequence[Sequence[Any]]
    ) -> list[tuple[float, ...]]:
        """Points spread over the box in the first rounds, then `next_choice`."""
        seed = len(answers) + len(pending)
        if len(answers) < max(FIRST_ANSWERS, math.ceil(2 * len(self._names) / num_shown)):
            found = draw_sobol_samples(self.bounds, n=num_shown * (seed + 1), q=1, seed=0).squeeze(-2)[-num_shown:]
        else:
            waiting = [torch.tensor(entry).double() for entry in pending]
            found = _next_choice(self.model(answers), num_shown, waiting, seed, bounds=self.bounds)
        low, high = self.bounds
        return [tuple(point) for point in found.clamp(low, high).tolist()]

    def best(self, answers: Sequence[Judgement]) -> dict[str, float]:
        """The best of the points shown, by the posterior mean of the utility that all judges share.

        Raises:
            InputDataError: If there are no answers.
        """
        if not answers:
            raise InputDataError("There are no answers yet.")
        model = self.model(answers)
        with torch.no_grad():
            place = model.latent_posterior(model.datapoints).mean.argmax()
        return self.arguments(model.datapoints[place].tolist())


def _observed(X: Tensor, answers: Sequence[Judgement], rows: Mapping[Any, int]) -> Observed:
    """Answers about points; of a single judge, whose utility is that of all."""
    if len({entry.judge for entry in answers}) < 2:
        answers = [Judgement(entry.better, entry.worse, entry.tie, entry.or_none) for entry in answers]
    known = observed(X, X.new_full((len(X),), math.nan), judgements=as_rows(answers, rows))
    if known is None:
        raise InputDataError("There are no answers about what is shown.")
    return known


def fitted(model: SkewGP) -> SkewGP:
    """The model with hyperparameters of the largest evidence."""
    with suppress_irrelevant_warnings():
        fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
    return model


def _next_choice(model: SkewGP, num: int, pending: Sequence[Tensor], seed: int, **where: Any) -> Tensor:
    """The options of the next choice, `num x d`, beside pending ones."""
    with suppress_irrelevant_warnings():
        options, _ = next_choice(model, num_options=num, pending=pending or None, seed=seed, **where)
    return options
