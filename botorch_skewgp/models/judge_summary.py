r"""What a panel has in common and what not: tastes with intervals, distances from what all share, agreement.

All of it is read off joint samples of the judges' utilities at some points, whatever the kernels are. A judge's tastes
are the coefficients of the best linear approximation of his utility there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from botorch.exceptions.errors import InputDataError
from botorch.sampling import SobolQMCNormalSampler
from torch import Tensor

from botorch_skewgp.models.committee import Committee
from botorch_skewgp.models.latent_model import LatentModel

NUM_POINTS = 24  # where utilities are compared, or twice as many as there are tastes
MOST_VALUES = 2048  # of utilities at a time, whose joint covariance is factored


@dataclass(frozen=True, eq=False)
class JudgeSummary:
    r"""A table of judges, after a first row of what all share; in units of the outcome and of the inputs.

    Args:
        judges: Who is in each row after the first.
        num_answers: How many answers each judge gave, `J`.
        mean: Posterior means of level and tastes, `(1 + J) x (1 + d)`: the mean utility over the points, then how it
            changes with each input. Comparisons tell nothing of levels.
        lower: Lower ends of their credible intervals.
        upper: Upper ends.
        difference: How far each judge is from what all share, `J`: the root mean square over the points, levels aside.
        agreement: On what share of pairs of points two judges have the same favourite, `J x J`.
    """

    judges: tuple[int | str, ...]
    num_answers: Tensor
    mean: Tensor
    lower: Tensor
    upper: Tensor
    difference: Tensor
    agreement: Tensor

    def columns(self, names: Sequence[str] | None = None, inputs: Sequence[str] | None = None) -> dict[str, list]:
        r"""The table as columns by name, for instance for `pandas.DataFrame`.

        Args:
            names: What judges are called; their numbers by default.
            inputs: What inputs are called; `x0`, `x1`, ... by default.

        Raises:
            InputDataError: If there are more or fewer names than judges or inputs.
        """
        names = [str(judge) for judge in self.judges] if names is None else list(names)
        inputs = [f"x{i}" for i in range(self.mean.shape[-1] - 1)] if inputs is None else list(inputs)
        if len(names) != len(self.judges) or len(inputs) != self.mean.shape[-1] - 1:
            raise InputDataError(
                f"There are {len(self.judges)} judges and {self.mean.shape[-1] - 1} inputs; got {len(names)} names and "
                f"{len(inputs)} inputs."
            )
        found: dict[str, list] = {
            "judge": ["all", *names],
            "answers": [int(self.num_answers.sum()), *self.num_answers.tolist()],
            "difference": [0.0, *self.difference.tolist()],
        }
        for i, label in enumerate(["level", *inputs]):
            found[label] = self.mean[:, i].tolist()
            found[f"{label}, lower"], found[f"{label}, upper"] = self.lower[:, i].tolist(), self.upper[:, i].tolist()
        return found

    def __str__(self) -> str:
        columns = self.columns()
        cells = [list(columns)] + [
            [f"{entry:.2f}" if isinstance(entry, float) else str(entry) for entry in row]
            for row in zip(*columns.values(), strict=True)
        ]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in cells)


@torch.no_grad()
def summarize_judges(
    model: LatentModel,
    judges: Sequence[int | str] | None = None,
    X: Tensor | None = None,
    level: float = 0.9,
    num_samples: int = 512,
    seed: int = 0,
) -> JudgeSummary:
    r"""The table of a model's judges.

    Args:
        model: A model of answers whose judges are named.
        judges: Which; all by default.
        X: The points, `n x d`, where utilities are compared; by default up to 24 of the training points.
        level: The probability of intervals.
        num_samples: The number of joint samples of utilities.
        seed: Of these samples.

    Raises:
        InputDataError: If answers do not name two judges, there are too many judges and points, or the points do not
            tell linear effects apart.
    """
    if len(model.judges) < 2:
        raise InputDataError("A summary needs two judges or more; name them with judge= in observations.")
    if not 0 < level < 1:
        raise InputDataError(f"level must be between 0 and 1; got {level}.")
    judges = sorted(model.judges) if judges is None else list(judges)
    committee = Committee(model, [None, *judges])
    if X is None:
        distinct = model.datapoints.unique(dim=0)
        spaced = torch.linspace(
            0,
            len(distinct) - 1,
            min(max(NUM_POINTS, 2 * (1 + distinct.shape[-1])), len(distinct)),
            device=distinct.device,
        )
        X = distinct[spaced.round().long()]
    n, d = X.shape
    if n * (1 + len(judges)) > MOST_VALUES:
        raise InputDataError(
            f"{len(judges)} judges at {n} points are too many for joint samples; name some judges, or fewer points."
        )
    design = torch.cat([X.new_ones(n, 1), X - X.mean(0)], dim=-1)
    if n < d + 1 or int(torch.linalg.matrix_rank(design)) < d + 1:
        raise InputDataError(f"X must hold {d + 1} points or more that are not all on one plane; got {n}.")
    posterior = committee.posterior(X)
    samples = SobolQMCNormalSampler(torch.Size([num_samples]), seed=seed)(posterior)  # s x n x (1 + J)
    tastes = torch.linalg.pinv(design) @ samples  # s x (1 + d) x (1 + J)
    tail = (1 - level) / 2
    lower, upper = torch.quantile(tastes, tastes.new_tensor([tail, 1 - tail]), dim=0).mT
    centred = samples - samples.mean(-2, keepdim=True)
    difference = (centred[..., 1:] - centred[..., :1]).square().mean(-2).mean(0).sqrt()
    first, second = torch.triu_indices(n, n, offset=1, device=X.device)
    sign = (samples[:, first, 1:] - samples[:, second, 1:]).sign().flatten(0, 1)
    agreement = 0.5 + 0.5 * sign.mT @ sign / len(sign)
    counts = [_num_answers(model, judge) for judge in judges]
    return JudgeSummary(tuple(judges), torch.tensor(counts), tastes.mean(0).mT, lower, upper, difference, agreement)


def _num_answers(model: LatentModel, judge: int | str) -> int:
    given = (entry.judge for entry in model.observations if entry.judge is not None)
    return sum(int((by == judge).sum()) for by in given) if isinstance(judge, int) else 0
