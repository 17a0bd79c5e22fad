"""What must hold for every input, and the comparison with the reference."""

from __future__ import annotations

import math
import re
import traceback
import warnings
from dataclasses import dataclass

import numpy as np
import torch
from botorch.exceptions.errors import BotorchError
from scipy.special import ndtr

from benchmarks.fuzz.cases import Case, model_of
from benchmarks.fuzz.reference import Contradiction, Reference, outcome_scale, reference_of
from botorch_skewgp import SkewGP, exceptions
from botorch_skewgp.papers import corrected_log_normalizer

LEVELS = (0.02, 0.3, 0.5, 0.9, 0.999)
LIMIT = 6.0  # standard errors, before a case is looked at again with many more draws
QUANTILE_TOLERANCE = 1e-10
LEAST_REFERENCE = 400  # effective draws, below which nothing is compared
LEAST_DEVIATION = {torch.float32: 1e-3, torch.float64: 1e-5}  # of a latent value, GPyTorch's `min_variance`
EP_TOLERANCE = (0.3, 0.03)  # nats, and share of the log evidence


@dataclass(frozen=True)
class Verdict:
    """What became of an input: `right`, `refused`, `warned`, `no reference`, `wrong` or `crash`; and why."""

    status: str
    why: str = ""

    @property
    def acceptable(self) -> bool:
        """Whether nothing is wrong in silence, and nothing failed without words."""
        return self.status not in ("wrong", "crash", "hang")


def check(case: Case, twice: bool = True) -> Verdict:
    """Build the model of a case, perhaps twice, ask it for everything, and compare with the reference."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = model_of(case)
            found = _broken(model, case, twice) or _compare(case, model)
        except BotorchError as error:
            return Verdict("refused", f"{type(error).__name__}: {_shape(str(error))}")
        except Contradiction as error:
            return Verdict("wrong", f"no refusal: {error}")
        except Exception as error:  # whatever it is: it goes into the table
            where = traceback.extract_tb(error.__traceback__)[-1]
            text = f"{type(error).__name__} in {where.filename.rpartition('/')[2]}: {_shape(str(error))}"
            return Verdict("crash", text)
    told = sorted({entry.category.__name__ for entry in caught if issubclass(entry.category, exceptions.SkewGPWarning)})
    if found == "no reference":
        return Verdict("no reference")
    telling = [exceptions.PoorDrawsWarning, exceptions.ContradictionWarning]
    if found.startswith("corrected evidence"):  # and nothing else
        telling += [exceptions.LargeCorrectionWarning, exceptions.ConvergenceWarning]
    if found and any(issubclass(entry.category, tuple(telling)) for entry in caught):
        return Verdict("warned", found)
    return Verdict("wrong", found) if found else Verdict("right", " ".join(told))


def _shape(message: str) -> str:
    """A message with numbers left out, so that equal ones can be counted."""
    return re.sub(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?", "#", message.partition("\n")[0])[:200]


@torch.no_grad()
def _broken(model: SkewGP, case: Case, twice: bool) -> str:
    """What must hold without any reference; the first thing that does not."""
    X = torch.tensor(case.queries, dtype=case.dtype)
    posterior = model.posterior(X)
    levels = torch.tensor(LEVELS, dtype=X.dtype)
    quantiles = posterior.quantile(levels)
    told = {"mean": posterior.mean, "variance": posterior.variance, "quantile": quantiles}
    for name, value in {**told, "cdf": posterior.cdf(posterior.mean)}.items():
        if not value.isfinite().all():
            return f"{name} is not finite"
    if (posterior.variance < 0).any():
        return "variance is negative"
    if (quantiles.diff(dim=0) < 0).any():
        return "quantiles decrease"
    if not case.single_precision:
        scale = torch.maximum(quantiles.abs(), posterior.component_means.abs().amax())
        step = 16 * torch.finfo(X.dtype).eps * scale  # a few units in the last place of what is compared
        below, above = (posterior.cdf(quantiles + side * step) for side in (-1, 1))
        at = posterior.cdf(quantiles)
        shaped = levels.view(-1, *[1] * (at.ndim - 1))
        off = ((at - shaped).abs() > QUANTILE_TOLERANCE) & ~((below <= shaped) & (above >= shaped))
        if off.any():
            return "cdf(quantile(p)) is not p"
    again = model_of(case).posterior(X) if twice else posterior
    if not (torch.equal(again.mean, posterior.mean) and torch.equal(again.variance, posterior.variance)):
        return "not deterministic"
    return ""


def _compare(case: Case, model: SkewGP) -> str:
    """Compare with the reference; what is too far off must still be so with eight times the draws."""
    reference = reference_of(case)
    if reference.effective_size < LEAST_REFERENCE:
        reference = reference_of(case, size=8 * 8192)
    if reference.effective_size < LEAST_REFERENCE:
        return "no reference"
    suspect = deviations(case, model, reference)
    if not suspect:
        return ""
    again = deviations(case, model_of(case, num_draws=8 * 2048, seed=2), reference_of(case, 8 * 8192, seed=1))
    return ", ".join(f"{name} off by {again[name]}" for name in suspect if name in again)


@torch.no_grad()
def deviations(case: Case, model: SkewGP, reference: Reference, limit: float = LIMIT) -> dict[str, str]:
    """Statistics that are further from the reference than chance explains."""
    posterior = model.posterior(torch.tensor(case.queries, dtype=case.dtype))
    size = float(model.draws.effective_size.min()) if model.draws.effective_size.numel() else math.inf
    means = posterior.component_means.double().numpy()
    own_variance = posterior.gaussian_variance.double().numpy()
    mean, variance = (x.double().flatten().numpy() for x in (posterior.mean, posterior.variance))
    sd, sd_error = reference.standard_deviation()
    center, center_error = reference.mean()
    unit = float(outcome_scale(case)[1])
    of_prior, of_center = (2e-3, 2e-3) if case.single_precision else (2e-5, 1e-6)
    floor = of_prior * math.sqrt(case.outputscale) * unit + of_center * np.abs(center)  # rounding
    floor += LEAST_DEVIATION[case.dtype] * unit
    found: dict[str, str] = {}

    def note(name: str, ours: np.ndarray, theirs: np.ndarray, error: np.ndarray, allowance: np.ndarray) -> None:
        excess = np.abs(ours - theirs) - allowance
        z = excess / np.maximum(error, 1e-300)
        worst = int(np.argmax(z))
        if z[worst] > limit:
            found[name] = f"{min(z[worst], 1e9):.1f} standard errors ({ours[worst]:.6g} for {theirs[worst]:.6g})"

    def own_error(influence: np.ndarray) -> np.ndarray:
        return influence.std(-1) / math.sqrt(size)

    note("mean", mean, center, np.hypot(own_error(means), center_error), floor + 1e-3 * sd)
    squared = (means - mean[:, None]) ** 2
    own_sd = np.sqrt(variance)
    sd_own_error = own_error(squared) / np.maximum(2 * own_sd, 1e-300)
    note("sd", own_sd, sd, np.hypot(sd_own_error, sd_error), floor + 5e-3 * sd)
    wide = sd > 50 * floor  # elsewhere the cdf is a step
    quantiles = posterior.quantile(torch.tensor(LEVELS, dtype=posterior.dtype)).double().flatten(1).numpy()
    for level, value in zip(LEVELS, quantiles, strict=True):
        theirs, error = reference.cdf(value)
        below = ndtr((value[:, None] - means) / np.maximum(np.sqrt(own_variance), 1e-300)[:, None])
        total = np.hypot(own_error(below), error)
        # a rare level is known from few draws: no less error than that of the counts
        total = np.maximum(total, math.sqrt(level * (1 - level) / min(size, reference.effective_size)) * 0.1)
        ours = np.full_like(theirs, level)
        slack = np.full_like(theirs, 0.02 if case.single_precision else 2e-3)
        note(f"cdf at {level}", np.where(wide, ours, 0), np.where(wide, theirs, 0), total, slack)
    if not case.single_precision and reference.evidence_size >= LEAST_REFERENCE:
        exact = model.log_marginal_likelihood("exact")
        error = np.array([math.hypot(float(exact.standard_error), reference.log_evidence_error)])
        ours, theirs = np.array([float(exact.value)]), np.array([reference.log_evidence])
        if not np.isfinite(ours).all():
            found["exact evidence"] = f"{ours[0]}, which is no number ({theirs[0]:.6g})"
        else:
            note("exact evidence", ours, theirs, error, np.array([0.02 + 1e-6 * abs(theirs[0])]))
        corrected = float(model.log_marginal_likelihood(corrected_log_normalizer).value)
        off = abs(corrected - reference.log_evidence)
        if not off <= EP_TOLERANCE[0] + EP_TOLERANCE[1] * abs(reference.log_evidence):
            found["corrected evidence"] = f"{off:.3g} nats ({corrected:.6g} for {reference.log_evidence:.6g})"
    return found
