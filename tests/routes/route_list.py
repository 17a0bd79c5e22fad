"""Routes that must give what the plain route gives: each says why both sides are equal."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from unittest import mock

import torch
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.exceptions.errors import UnsupportedError
from gpytorch.kernels import Kernel
from route_problems import (
    BESIDE,
    COUNTABLE,
    NUM_ANSWERS,
    NUM_GRADES,
    NUM_JUDGES,
    Problem,
    answers_predicted,
    assert_same,
    changed,
    compares,
    counts_of,
    is_possible,
    judges_asked,
    kernel_of,
    likelihood_of,
    model_of,
    new_points,
    observations_of,
    points_of,
    posterior_of,
    said_of,
    says,
    slips_of,
    take,
)
from torch import Tensor

from botorch_skewgp import SkewGP
from botorch_skewgp.checking import leave_one_out
from botorch_skewgp.likelihoods import MixedLikelihood, ProbitAffineLikelihood, RowLikelihood, default_likelihood
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import FullyBayesianSkewGP, prior_model
from botorch_skewgp.observations import (
    AffineProbit,
    Binary,
    Choice,
    Numeric,
    Observation,
    Ordinal,
    Preference,
    Ranking,
    Tie,
    Validity,
)
from botorch_skewgp.truncated.draws import DrawSettings

ROUNDING = 1e-7  # of sums in another order
SITES = 5e-5  # of expectation propagation, which stops when sites change by less
PROJECTION = 2e-4  # of the jitter of inducing points' covariance, and of sites


@dataclass(frozen=True)
class Route:
    """A route, and the problems that it takes."""

    check: Callable[[Problem], None]
    takes: Callable[[Problem], bool]
    is_slow: bool = False

    @property
    def name(self) -> str:
        return self.check.__name__


ROUTES: dict[str, Route] = {}


def route(
    takes: Callable[[Problem], bool] = lambda problem: True,
    is_slow: bool = False,
    among: dict[str, Route] = ROUTES,
) -> Callable:
    """Register a route."""

    def register(check: Callable[[Problem], None]) -> Callable[[Problem], None]:
        among[check.__name__] = Route(check, takes, is_slow)
        return check

    return register


def same_as_plain(problem: Problem, model: SkewGP, tolerance: float = ROUNDING, X: Tensor | None = None) -> None:
    """The model says what the plain one does."""
    X = new_points(problem) if X is None else X
    assert_same(says(model, X, judges_asked(problem)), said_of(problem), tolerance)


# Data


@route(lambda problem: not (problem.has_judges and (problem.has_numbers or problem.kind == "classes")))
def inducing_at_all_points(problem: Problem) -> None:
    """Values at the training points explain all answers, so that inducing points there lose nothing."""
    same_as_plain(problem, model_of(problem, inducing_points=points_of(problem)), PROJECTION)


@route(lambda problem: problem.weights == "counts")
def counts_and_repeats(problem: Problem) -> None:
    """A count of answers is the answers one by one."""
    repeated = []
    for entry in observations_of(changed(problem, weights="single")):
        is_counted = entry.num_answers != len(BESIDE)
        times = counts_of(problem, entry.num_answers) if is_counted else torch.ones(len(BESIDE), dtype=torch.long)
        repeated.append(take(entry, torch.arange(entry.num_answers).repeat_interleave(times)))
    same_as_plain(problem, model_of(problem, observations=repeated), SITES)


@route(lambda problem: problem.weights == "single" and is_possible(changed(problem, weights="fractions")))
def weights_of_nearly_one(problem: Problem) -> None:
    """The power of a likelihood is continuous in the weight."""
    entries = observations_of(problem)
    weighted = [
        replace(entry, count=torch.full((entry.num_answers,), 1 + 1e-9).double()) if hasattr(entry, "count") else entry
        for entry in entries
    ]
    same_as_plain(problem, model_of(problem, observations=weighted), 1e-5)


@route(lambda problem: problem.kind != "affine")
def answers_in_several_objects(problem: Problem) -> None:
    """The likelihood is a product over answers, in any order."""
    entries = [
        take(entry, which)
        for entry in observations_of(problem)
        for which in (torch.arange(1, entry.num_answers, 2).flip(0), torch.arange(0, entry.num_answers, 2))
    ]
    model = model_of(problem, observations=entries[::-1])
    said = says(model, new_points(problem), judges_asked(problem))
    said.pop("slips")  # in the order of the objects
    assert_same(said, said_of(problem), SITES)


@route()
def points_in_another_order(problem: Problem) -> None:
    """Answers refer to points, whose order says nothing; a point may also be given twice."""
    X, entries = points_of(problem), observations_of(problem)
    order = torch.tensor([3, 0, 6, 2, 5, 1, 4])
    again = torch.cat([X[order], X[:2]])
    place = order.argsort()
    moved = []
    for entry in entries:
        index = getattr(entry, entry.index_field)
        new = torch.where(index >= 0, place[index.clamp(min=0)], index)
        if entry.points_per_observation == 1 and problem.kind != "affine":
            every_other = (torch.arange(len(index)) % 2 == 0).view(-1, *[1] * (index.ndim - 1))
            new = torch.where((index < 2) & every_other, index + len(X), new)
        moved.append(entry._with({entry.index_field: new}))
    same_as_plain(problem, model_of(problem, train_X=again, observations=moved), SITES)


@route(lambda problem: problem.kind != "affine" and not problem.standardises)
def conditioned_and_rebuilt(problem: Problem) -> None:
    """A model given more answers is the model of all answers with the same hyperparameters."""
    first, rest = [], []
    for entry in observations_of(problem):
        named = entry.judge is not None and NUM_JUDGES[problem.judges] > 1
        early = torch.arange(entry.num_answers) < (4 if named else 2)
        first.append(take(entry, early.nonzero().squeeze(-1)))
        rest.append(take(entry, (~early).nonzero().squeeze(-1)))
    X = points_of(problem)
    model = model_of(problem, observations=first).condition_on_observations(X, rest)
    said = says(model, new_points(problem), judges_asked(problem))
    if len(first) > 1:
        said.pop("slips")
    assert_same(said, said_of(problem), SITES)


@route(lambda problem: not problem.standardises)
def data_replaced_and_rebuilt(problem: Problem) -> None:
    """A model whose data are replaced is the model of the new data."""
    X, entries = points_of(problem), observations_of(problem)
    model = model_of(problem, train_X=X.flip(0) if problem.kernel == "categories" else X.flip(0) * 0.9)
    posterior_of(model, new_points(problem))
    model.set_train_data(X, entries)
    same_as_plain(problem, model)


# Queries


@route()
def batch_and_single(problem: Problem) -> None:
    """A batch of queries is its queries one by one."""
    X = new_points(problem, 4)
    batch = torch.stack([X[:2], X[2:], X[1:3]]).unsqueeze(1)
    model = model_of(problem)
    for judge in judges_asked(problem):
        posterior = model.posterior(batch, judge=judge)
        each = [model.posterior(x, judge=judge) for x in batch.flatten(0, 1)]
        for name in ("mean", "variance", "covariance_matrix"):
            alone = torch.stack([getattr(p, name) for p in each]).unsqueeze(1)
            torch.testing.assert_close(getattr(posterior, name), alone, rtol=1e-8, atol=1e-8)
        together = answers_predicted(model, batch[..., :2, :], judge)
        one_by_one = [answers_predicted(model, x, judge) for x in batch.flatten(0, 1)]
        for name, value in together.items():
            alone = torch.stack([said[name] for said in one_by_one]).unsqueeze(1)
            torch.testing.assert_close(value, alone, rtol=1e-7, atol=1e-7)


@route()
def joint_and_one_by_one(problem: Problem) -> None:
    """Margins of a joint posterior are the posteriors of single points, in any order of the points."""
    X, model, judges = new_points(problem, 4), model_of(problem), judges_asked(problem)
    joint = posterior_of(model, X, judges)
    turned = posterior_of(model, X.flip(0), judges)
    points = -3 if model.num_outputs > 1 and len(judges) > 1 else 0
    torch.testing.assert_close(turned["mean"].flip(-2), joint["mean"], rtol=1e-8, atol=1e-8)
    each = torch.cat([posterior_of(model, x.unsqueeze(0), judges)["mean"] for x in X], dim=-2)
    torch.testing.assert_close(each, joint["mean"], rtol=1e-8, atol=1e-8)
    variances = [posterior_of(model, x.unsqueeze(0), judges)["covariance"].diagonal(dim1=-2, dim2=-1) for x in X]
    assert points in (-3, 0)
    torch.testing.assert_close(
        torch.cat(variances, dim=-1), joint["covariance"].diagonal(dim1=-2, dim2=-1), rtol=1e-8, atol=1e-8
    )


@route(lambda problem: problem.has_judges)
def judge_by_argument_and_by_model(problem: Problem) -> None:
    """A judge named in the call, a model of the judge, an output of a committee: one utility."""
    X, model = new_points(problem), model_of(problem)
    committee = None if model.num_outputs > 1 else model.for_judge(judges_asked(problem)).posterior(X)
    for place, judge in enumerate(judges_asked(problem)):
        one = model.for_judge(judge)
        posterior, by_argument = one.posterior(X), model.posterior(X, judge=judge)
        expected = {"mean": posterior.mean, "variance": posterior.variance}
        assert_same({"mean": by_argument.mean, "variance": by_argument.variance}, expected)
        assert_same(
            answers_predicted(one, X) | {"slips": one.slips()},
            answers_predicted(model, X, judge) | {"slips": model.slips()},
        )
        if committee is not None:
            said = {"mean": committee.mean[..., place, None], "variance": committee.variance[..., place, None]}
            assert_same(said, expected)
            latent = model.latent_posterior(X, [judge] * len(X))
            said = {"mean": latent.mean, "covariance": latent.covariance_matrix}
            alone = one.latent_posterior(X)
            assert_same(said, {"mean": alone.mean, "covariance": alone.covariance_matrix})


@route(lambda problem: problem.has_judges and problem.kind != "affine")
def rows_of_judges_and_of_one(problem: Problem) -> None:
    """The rows of a judge's answers are those of answers without a name under the likelihood of that judge."""
    model, like = model_of(problem), torch.zeros(1, dtype=torch.float64)
    for entry in model.observations:
        part = model.likelihood.for_kind(type(entry))
        for judge in () if entry.judge is None else entry.judge.unique().tolist():
            mine = take(entry, entry.judge == judge)
            rows, alone = part.rows(mine, like), part.for_judge(judge).rows(mine._with({"judge": None}), like)
            said = [
                {"lower": each.lower, "upper": each.upper, "noise": each.noise}
                | ({} if each.heights is None else {"outside": each.heights.outside})
                for each in (rows, alone)
            ]
            finite = [{name: value.nan_to_num(posinf=9e9, neginf=-9e9) for name, value in one.items()} for one in said]
            assert_same(*finite)


@route()
def posterior_transformed_by_hand(problem: Problem) -> None:
    """A weighted sum of outputs has the weighted mean and variance."""
    X, model = new_points(problem), model_of(problem)
    models: list = [model.for_judge(judge) for judge in judges_asked(problem)]
    if problem.has_judges and model.num_outputs == 1:
        models.append(model.for_judge(judges_asked(problem)))
    if model.num_outputs == 1:
        models.append(FullyBayesianSkewGP([model, model]))
    for each in models:
        plain = each.posterior(X)
        o = plain.mean.shape[-1]
        weights = torch.linspace(-1.0, 2.0, o, dtype=torch.float64) if o > 1 else torch.tensor([-1.5]).double()
        posterior = each.posterior(X, posterior_transform=ScalarizedPosteriorTransform(weights, 0.7))
        torch.testing.assert_close(posterior.mean.squeeze(-1), plain.mean @ weights + 0.7)
        W = torch.kron(torch.eye(len(X), dtype=torch.float64), weights.unsqueeze(0))
        torch.testing.assert_close(posterior.covariance_matrix, W @ plain.covariance_matrix @ W.mT)


@route(lambda problem: problem.kind != "classes")
def noise_added_by_hand(problem: Problem) -> None:
    """Noise of an observation is independent of the latent function."""
    X, model = new_points(problem), model_of(problem)
    noise = torch.tensor([[0.1], [0.4], [0.2]], dtype=torch.float64)
    for judge in judges_asked(problem):
        plain = model.posterior(X, judge=judge)
        noisy = model.posterior(X, judge=judge, observation_noise=noise)
        torch.testing.assert_close(noisy.mean, plain.mean)
        torch.testing.assert_close(noisy.covariance_matrix, plain.covariance_matrix + torch.diag(noise.squeeze(-1)))


@route(lambda problem: not problem.has_slopes and problem.judges != "reliability")
def first_asked_without_gradients_or_points(problem: Problem) -> None:
    """Without gradients, and of no points or no queries, posteriors have their shapes, and the model says the same."""
    model = model_of(problem)
    with torch.inference_mode():
        model.posterior(new_points(problem)).mean  # noqa: B018
    for shape in ((0, 2), (2, 0, 2), (0, 3, 2)):
        for judge in judges_asked(problem):
            posterior = model.posterior(torch.zeros(shape, dtype=torch.float64), judge=judge)
            assert posterior.mean.shape == posterior.variance.shape == (*shape[:-1], model.num_outputs)
            assert posterior.rsample(torch.Size([2])).shape == (2, *shape[:-1], model.num_outputs)
    same_as_plain(problem, model)


# Copies


@route()
def copied_restored_and_moved(problem: Problem) -> None:
    """A copy, what a pickle restores, a model with the state of another, any mode: each says what the model does."""
    model, other = model_of(problem), model_of(problem)
    posterior_of(model, new_points(problem))
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(0.05)
    posterior_of(other, new_points(problem))
    other.load_state_dict(pickle.loads(pickle.dumps(deepcopy(model))).state_dict())
    same_as_plain(problem, deepcopy(other.train()).eval().double())


@route()
def one_of_two_that_share(problem: Problem) -> None:
    """A model is not changed by another one that is built of the same parts."""
    likelihood, kernel = likelihood_of(problem), kernel_of(problem)
    model = model_of(problem, likelihood=likelihood, covar_module=kernel)
    if problem.kernel == "default kernel":
        kernel = model.covar_module
    entries = observations_of(problem)
    if problem.kind != "classes" and problem.judges != "reliability":
        entries = [*entries, Numeric(torch.tensor([0.3, -1.0]).double())]
    model_of(problem, likelihood=likelihood, covar_module=kernel, observations=entries)
    same_as_plain(problem, model)
    if problem.has_slopes:  # which contradict each other without noise
        return
    own = default_likelihood(observations_of(problem)[:1])
    by_default = model_of(problem, likelihood=own)
    before = posterior_of(by_default, new_points(problem))
    model_of(problem, likelihood=own, observations=entries)
    assert_same(posterior_of(by_default.train().eval(), new_points(problem)), before)


@route()
def ensemble_of_one(problem: Problem) -> None:
    """The average of a model with itself is the model."""
    X, model = new_points(problem), model_of(problem)
    for members in (1, 2):
        ensemble = FullyBayesianSkewGP([deepcopy(model) for _ in range(members)])
        for judge in judges_asked(problem):
            one, other = ensemble.posterior(X, judge=judge), model.posterior(X, judge=judge)
            for i in range(members):
                assert_same(
                    {"mean": one.mean[i], "covariance": one.covariance_matrix[i]},
                    {"mean": other.mean, "covariance": other.covariance_matrix},
                )
            assert_same({"variance": one.mixture_variance}, {"variance": other.variance})
            predicted = answers_of_ensemble(ensemble, model, X, judge)
            if predicted:
                assert_same(predicted, answers_predicted(model, X, judge))
        assert_same({"slips": ensemble.slips()}, {"slips": model.slips()})


def answers_of_ensemble(ensemble: FullyBayesianSkewGP, model: SkewGP, X: Tensor, judge: int | str | None) -> dict:
    """Predictions of an ensemble, by the names of those of its member."""
    with mock.patch.object(ensemble, "likelihood", model.likelihood, create=True):
        return answers_predicted(ensemble, X, judge)


# Precision and transforms


@route(lambda problem: problem.mean != "linear mean")
def single_precision(problem: Problem) -> None:
    """Single precision has seven digits, of which factorisations, in double, lose few."""
    X = new_points(problem)
    model = model_of(problem, train_X=points_of(problem).float())
    assert model.posterior(X.float()).mean.dtype == torch.float32
    assert_same(says(model, X.float(), judges_asked(problem)), said_of(problem), 2e-3)


@route(lambda problem: problem.normalises)
def inputs_transformed_by_hand(problem: Problem) -> None:
    """A transform of inputs is the model of transformed points."""
    bounds = torch.tensor([[-0.5, -0.25], [1.5, 2.25]]).double()

    def by_hand(X: Tensor) -> Tensor:
        return (X - bounds[0]) / (bounds[1] - bounds[0])

    plain = changed(problem, transforms="outcomes" if problem.standardises else "untransformed")
    model = model_of(plain, train_X=by_hand(points_of(problem)))
    same_as_plain(problem, model, X=by_hand(new_points(problem)))


@route(lambda problem: problem.standardises)
def outcomes_transformed_by_hand(problem: Problem) -> None:
    """A standardised outcome is the model of standardised numbers, bounds, thresholds and noise."""
    entries = observations_of(problem)
    numbers = [entry.numbers for entry in entries if entry.numbers.numel()]
    num_numbers = sum(len(entry.values) for entry in entries if isinstance(entry, Numeric))
    values = torch.cat(numbers or [entry.middles for entry in entries if entry.middles.numel()])
    location, scale = values.mean(), values.std()
    by_hand = []
    for entry in entries:
        new: dict = {}
        for name in ("values", "lower", "upper"):
            if entry.anchors_scale and hasattr(entry, name):
                weights = getattr(entry, "weights", None)
                total = 1.0 if weights is None else weights.sum(-1)
                new[name] = (getattr(entry, name) - location * total) / scale
        if getattr(entry, "noise", None) is not None:
            new["noise"] = entry.noise / scale**2
        by_hand.append(entry._with(new))
    given = {name: float((value - location) / scale) for name, value in (("threshold", 0.2), ("validity", 0.3))}
    plain = changed(problem, transforms="inputs" if problem.normalises else "untransformed")
    model = model_of(plain, observations=by_hand, likelihood=likelihood_of(problem, given))
    X, judges = new_points(problem), judges_asked(problem)
    inside, outside = said_of(problem), says(model, X, judges)
    said = {
        "mean": location + scale * outside["mean"],
        "covariance": scale**2 * outside["covariance"],
        "slips": outside["slips"],
        "evidence": outside["evidence"] - num_numbers * scale.log(),
    }
    for name, value in outside.items():
        if name.startswith("answers"):
            said[name] = (
                location + scale * value if "mean" in name else scale**2 * value if "variance" in name else value
            )
    assert_same(said, inside, SITES)


# The prior, by GPyTorch's own evaluation


def prior_by_hand(problem: Problem, model: SkewGP, A: Tensor, by_A: list, B: Tensor, by_B: list) -> Tensor:
    """`r_j r_k (k + constant + [j = k] own)` of points of judges, from GPyTorch's evaluation, point by point."""

    def evaluated(kernel: Kernel, X: Tensor, Z: Tensor) -> Tensor:
        return torch.cat([kernel(x[None], Z).to_dense() for x in X])

    A, B = (model.transform_inputs(points) for points in (A, B))
    K = evaluated(model.covar_module, A, B)
    if hasattr(model.mean_module, "kernel"):
        K = K + model.mean_module.variance
    if not problem.has_judges:
        return K
    same = torch.tensor([[a is not None and a == b for b in by_B] for a in by_A])
    K = K + same * evaluated(model.judge_covar_module, A, B)
    r = dict.fromkeys((*by_A, *by_B), 1.0)
    if problem.judges == "reliability":
        r |= dict(enumerate(model.judge_reliability.values.tolist()))
    return torch.tensor([[r[a] * r[b] for b in by_B] for a in by_A]).double() * K


@route(lambda problem: problem.kind != "classes" and not problem.has_slopes)
def posterior_from_values_at_data(problem: Problem) -> None:
    """Given values at the data new values have the prior's law: `m + K_xz K_zz^-1 (E - m_z)`, and its covariance."""
    model = model_of(problem)
    Z, X = points_of(problem), new_points(problem)[1:]
    by = sorted({judge for entry in observations_of(problem) for judge in judges_in(entry, problem)}, key=str)
    asked = judges_asked(problem)
    points_Z, judges_Z = Z.repeat(len(by), 1), [judge for judge in by for _ in Z]
    points_X, judges_X = X.repeat(len(asked), 1), [judge for judge in asked for _ in X]
    if problem.prior == "skew prior":
        pseudo = model.skew_prior.pseudo_points
        transform = getattr(model, "input_transform", None)
        points_Z = torch.cat([points_Z, pseudo if transform is None else transform.untransform(pseudo)])
        judges_Z = [*judges_Z, *[None] * len(pseudo)]
    joint, places = torch.cat([points_X, points_Z]), [*judges_X, *judges_Z]
    posterior = model.latent_posterior(joint, places if problem.has_judges else None)
    n = len(points_X)
    mean = model.mean_module(model.transform_inputs(joint))
    if problem.judges == "reliability":
        values = model.judge_reliability.values.tolist()
        mean = mean * torch.tensor([values[judge] if isinstance(judge, int) else 1.0 for judge in places])
    K = prior_by_hand(problem, model, joint, places, joint, places)
    A = torch.linalg.lstsq(K[n:, n:] + 1e-9 * torch.eye(len(K) - n).double(), K[n:, :n]).solution.mT
    left, C = posterior.mean.squeeze(-1) - mean, posterior.covariance_matrix
    said = {"mean": left[:n], "covariance": C[:n, :n], "between": C[:n, n:]}
    expected = {
        "mean": A @ left[n:],
        "covariance": K[:n, :n] - A @ (K[n:, n:] - C[n:, n:]) @ A.mT,
        "between": A @ C[n:, n:],
    }
    assert_same(said, expected, 1e-4)


def judges_in(entry: Observation, problem: Problem) -> list:
    """The judges of an object's answers, as far as they have utilities of their own."""
    if entry.judge is None or not problem.has_judges:
        return [None]
    return entry.judge.unique().tolist()


@route(lambda problem: problem.has_slopes and problem.beside == "alone")
def slopes_and_differences(problem: Problem) -> None:
    """A slope with noise is a difference of values nearby, over their distance, with that noise."""
    (entry, *unnamed), X, step = observations_of(problem), points_of(problem), 1e-3
    range_of_inputs = torch.tensor([2.0, 2.5]).double() if problem.normalises else torch.ones(2).double()
    pieces = []
    for each in (entry, *unnamed):
        m = each.num_answers
        along = step * torch.nn.functional.one_hot(each.dims, 2) * range_of_inputs
        rises = torch.where(each.signs > 0, 0.0, -torch.inf), torch.where(each.signs > 0, torch.inf, 0.0)
        weight = torch.cat([torch.eye(m), -torch.eye(m)], dim=-1).double() / (2 * step)
        index = sum(map(len, pieces[1::2])) + len(X) + torch.arange(2 * m)
        noise = 0.4 * torch.eye(m).double()
        pieces += [
            AffineProbit(weight, 0.0, noise, *(bound.double() for bound in rises), index=index, judge=each.judge),
            torch.cat([X[each.index] + along, X[each.index] - along]),
        ]
    likelihood = ProbitAffineLikelihood(**slips_of(problem))
    model = model_of(problem, train_X=torch.cat([X, *pieces[1::2]]), observations=pieces[::2], likelihood=likelihood)
    said = says(model, new_points(problem), judges_asked(problem))
    assert_same(said, said_of(problem), 5e-3)


# Gradients


@route()
def gradient_of_evidence(problem: Problem) -> None:
    """The derivative of the objective along a direction in all parameters, by central differences; and its value there
    by an objective that has not been evaluated elsewhere.
    """
    model = model_of(problem).train()
    mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
    parameters = [parameter for parameter in mll.parameters() if parameter.requires_grad]
    random = torch.Generator().manual_seed(4)
    directions = [torch.randn(p.shape, generator=random, dtype=torch.float64).to(p) for p in parameters]

    def value(objective: SkewGPMarginalLogLikelihood) -> Tensor:
        return objective(model(*model.train_inputs), model.train_targets)

    gradient = torch.autograd.grad(value(mll), parameters, allow_unused=True)
    along = sum(float((g * d).sum()) for g, d in zip(gradient, directions, strict=True) if g is not None)
    step, ends = 1e-3, list[float]()
    with torch.no_grad():
        for sign in (1, -2):
            for parameter, direction in zip(parameters, directions, strict=True):
                parameter.add_(sign * step * direction)
            # from a start of its own, as the error of one nearby, 1e-7, is much of the difference
            ends.append(float(value(SkewGPMarginalLogLikelihood(model.likelihood, model))))
        nearby = float(value(mll))
    assert abs(nearby - ends[1]) <= 1e-7 * (1 + abs(ends[1])), f"{nearby} for {ends[1]}"
    difference = (ends[0] - ends[1]) / (2 * step)
    assert abs(along - difference) <= 1e-4 * (1 + abs(difference)), f"{along} for {difference}"


@route()
def gradient_of_posterior(problem: Problem) -> None:
    """The derivative of mean and covariance along a direction of points, by central differences."""
    model = model_of(problem)
    X = new_points(problem).requires_grad_()
    direction = torch.tensor([[0.3, -0.5], [0.7, 0.2], [-0.4, 0.6]]).double()
    if problem.kernel == "categories":
        direction[:, 1] = 0
    for judge in judges_asked(problem):

        def value(x: Tensor, judge: int | str | None = judge) -> Tensor:
            posterior = model.posterior(x, judge=judge)
            return (posterior.mean.sin().sum() + posterior.covariance_matrix.cos().sum()).double()

        (gradient,) = torch.autograd.grad(value(X), X)
        step = 1e-5
        with torch.no_grad():
            difference = float(value(X + step * direction) - value(X - step * direction)) / (2 * step)
        along = float((gradient * direction).sum())
        assert abs(along - difference) <= 1e-5 * (1 + abs(difference)), f"{along} for {difference}"


@route(lambda problem: problem.has_numbers and not problem.has_slopes)
def gradient_of_points_of_data(problem: Problem) -> None:
    """Derivatives in points that a model is given with numbers are right, or there are none."""
    model, (X, Y, noise) = model_of(problem), more_numbers(problem)
    X, Q = X.requires_grad_(), new_points(problem)[:1]
    direction = torch.tensor([[0.3, 0.0], [0.7, 0.0], [-0.4, 0.0]]).double()
    try:
        mean = model.condition_on_observations(X, Y, noise).posterior(Q).mean.sum()
    except UnsupportedError:
        return
    if not mean.requires_grad:
        return
    (gradient,) = torch.autograd.grad(mean, X, allow_unused=True)
    if gradient is None:
        return
    with torch.no_grad():
        ends = [
            float(model.condition_on_observations(X + sign * 1e-5 * direction, Y, noise).posterior(Q).mean)
            for sign in (1, -1)
        ]
    difference, along = (ends[0] - ends[1]) / 2e-5, float((gradient * direction).sum())
    assert abs(along - difference) <= 1e-3 * (1 + abs(difference)), f"{along} for {difference}"


# Merging


@route(lambda problem: problem.weights == "single" and problem.kind in COUNTABLE)
def merged_and_single(problem: Problem) -> None:
    """Equal answers as one row with a count have the evidence, its gradient and the posterior of single rows."""
    entries = [
        take(entry, torch.arange(entry.num_answers).repeat_interleave(6)) if entry.num_answers == NUM_ANSWERS else entry
        for entry in observations_of(problem)
    ]
    if problem.kind == "grades of items":  # of every item at every point
        entries = [replace(each, item=torch.arange(each.num_answers) // 2 % 2) for each in entries[:1]] + entries[1:]

    def said(most_single_rows: int) -> dict[str, Tensor]:
        with mock.patch.object(prior_model, "MAX_SINGLE_ROWS", most_single_rows):
            model = model_of(problem, observations=entries).train()
            mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
            parameters = {name: p for name, p in mll.named_parameters() if p.requires_grad}
            value = mll(model(*model.train_inputs), model.train_targets)
            gradient = torch.autograd.grad(value, parameters.values(), allow_unused=True)
            gradients = {name: g for name, g in zip(parameters, gradient, strict=True) if g is not None}
            posterior = posterior_of(model.eval(), new_points(problem), judges_asked(problem))
        return {"objective": value} | gradients | posterior

    assert_same(said(4), said(10**6), 1e-4)


# More data


def more_numbers(problem: Problem) -> tuple[Tensor, Tensor, Tensor]:
    """New points, with numbers there and their noise."""
    values = torch.tensor([[0.4], [-0.7], [1.1]], dtype=torch.float64)
    return new_points(problem), values, torch.full_like(values, 0.2)


@route(
    lambda problem: (
        problem.kind in ("numbers", "known noise", "sums")
        and problem.beside == "alone"
        and problem.prior == "Gaussian prior"
    )
)
def conditioned_in_closed_form_and_rebuilt(problem: Problem) -> None:
    """Numbers of a batch, as look-aheads make them, are the numbers of a larger model, where there are only numbers."""
    model, (X, Y, noise) = model_of(problem), more_numbers(problem)
    for judge in judges_asked(problem)[:2]:
        one = model.for_judge(judge)
        batch = one.condition_on_observations(X.unsqueeze(0), Y.unsqueeze(0), noise.unsqueeze(0))
        larger = one.condition_on_observations(X, Y, noise)
        Q = new_points(problem) * 0.9 if problem.kernel != "categories" else new_points(problem)
        expected = larger.posterior(Q)
        posterior = batch.posterior(Q)
        assert_same(
            {"mean": posterior.mean[0], "covariance": posterior.covariance_matrix[0]},
            {"mean": expected.mean, "covariance": expected.covariance_matrix},
            1e-5,
        )


@route(lambda problem: problem.has_numbers and not problem.has_slopes)
def conditioned_at_once_and_in_turn(problem: Problem) -> None:
    """Numbers that come one after the other are numbers that come together, for a mixture of any draws."""
    model = model_of(problem, approximation=None)
    X, Y, noise = (each.unsqueeze(0) for each in more_numbers(problem))
    for judge in judges_asked(problem)[:2]:
        one = model.for_judge(judge)
        once = one.condition_on_observations(X, Y, noise)
        first = one.condition_on_observations(X[:, :1], Y[:, :1], noise[:, :1])
        turn = first.condition_on_observations(X[:, 1:], Y[:, 1:], noise[:, 1:])
        assert_same(posterior_of(turn, X[0]), posterior_of(once, X[0]), 1e-5)


@route(lambda problem: problem.kind != "classes" and not problem.has_slopes)
def fantasies_in_any_mode(problem: Problem) -> None:
    """What a fantasy was given stays, in either mode and in copies."""
    model, (X, Y, noise) = model_of(problem), more_numbers(problem)
    for judge in judges_asked(problem)[:2]:
        one = model.for_judge(judge)
        if problem.has_numbers:
            fantasy = one.condition_on_observations(X.unsqueeze(0), Y.unsqueeze(0), noise.unsqueeze(0))
        elif compares(model):
            fantasy = one.condition_on_observations(X.unsqueeze(0), torch.tensor([[[0, 1], [2, 1]]]))
        else:
            return
        before = posterior_of(fantasy, X)
        plain = posterior_of(one, X)
        assert not torch.allclose(before["mean"], plain["mean"].expand_as(before["mean"]), atol=1e-3)
        assert_same(posterior_of(fantasy.train(), X), before)
        assert_same(posterior_of(pickle.loads(pickle.dumps(deepcopy(fantasy.eval()))), X), before)
        assert_same(posterior_of(one, X), plain)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1)
    posterior_of(model, X)
    assert_same(posterior_of(fantasy.train().eval(), X), before)


@route(lambda problem: problem.kind != "classes")
def refined_by_draws(problem: Problem) -> None:
    """Values that are drawn from the posterior leave it as it is, on average."""
    model, X = model_of(problem), new_points(problem)
    finer, values = model.condition_on_draws(X[1:2], samples_per_draw=256 if problem.kind == "numbers" else 64)
    one, other = finer.posterior(X), model.posterior(X)
    scale = other.variance.sqrt()
    assert ((one.mean - other.mean).abs() <= 0.2 * scale + 1e-9).all()
    assert ((one.variance / other.variance).log().abs() <= 0.3).all()
    assert (values.mean() - other.mean[1]).abs() <= 0.2 * scale[1]
    twice, _ = finer.condition_on_draws(X[2:3])
    assert ((twice.posterior(X).variance / other.variance).log().abs() <= 0.3).all()


# Predictions


@route(lambda problem: problem.kind != "classes")
def predicted_by_samples(problem: Problem) -> None:
    """The probability of an answer is the average of its probability given the latent function."""
    model, X = model_of(problem), new_points(problem)
    for judge in judges_asked(problem):
        one = model.for_judge(judge)
        likelihood, predicted = one.answering_likelihood, answers_predicted(one, X)
        of_kinds = {part.observation_types[0].__name__: part for part in parts_of_likelihood(likelihood)}
        for name, probabilities in predicted.items():
            part = of_kinds.get(name)
            varies = part is None or part.around_judge() is not None or getattr(part, "num_items", None) is not None
            if varies or (judge == "new" and problem.judges == "reliability") or name == "Numeric":
                continue
            at = X if part.observation_types[0].points_per_observation == 1 and not compares(model) else X[:2]
            samples = one.latent_posterior(at).rsample(torch.Size([4096])).squeeze(-1)
            probs = part(samples, scale=one.outcome_scale).probs
            average, error = probs.mean(0), probs.std(0) / 64
            probabilities = probabilities.reshape(average.shape)
            assert ((average - probabilities).abs() <= 5 * error + 0.01).all(), (
                f"{name} of {judge}: {average}, {probabilities}"
            )


def parts_of_likelihood(likelihood: RowLikelihood) -> list[RowLikelihood]:
    return [*likelihood.likelihoods] if isinstance(likelihood, MixedLikelihood) else [likelihood]


ANSWERS: dict[str, tuple[Observation, int]] = {  # with their places among all probabilities
    "labels": (Binary([1], index=[1]), 1),
    "validity": (Validity([1], index=[1]), 1),
    "grades": (Ordinal([1], NUM_GRADES, index=[1]), NUM_GRADES + 1),
    "duels": (Preference([[0, 1]]), 0),
    "ties": (Tie([[0, 1]]), 2),
    "choices": (Choice([[0, 1]]), 0),
    "rankings": (Ranking([[0, 1]]), 0),
}


@route(lambda problem: problem.kind in ANSWERS and problem.beside == "alone")
def predicted_and_ratio_of_evidences(problem: Problem) -> None:
    """The probability of an answer is the evidence with it over that without, up to expectation propagation's error."""
    model, X = model_of(problem), new_points(problem)
    answer, place = ANSWERS[problem.kind]
    judge = judges_asked(problem)[1] if problem.has_judges else None
    if isinstance(judge, int):
        answer = answer.by(judge)
    ratio = float(model.log_predictive_probability(X, answer).exp())
    (predicted,) = answers_predicted(model, X, judge).values()
    right = float(predicted.flatten()[place])
    assert abs(ratio - right) < 0.03, f"{ratio} for {right}"


# Draws


def moments(model: SkewGP, X: Tensor, judges: tuple) -> dict[str, Tensor]:
    posterior = posterior_of(model, X, judges)
    return {"mean": posterior["mean"], "sd": posterior["covariance"].diagonal(dim1=-2, dim2=-1).sqrt()}


def is_drawn(problem: Problem) -> bool:
    """Whether a sampler takes the problem: none does weights beside slips and rows without noise."""
    quiet = problem.prior == "skew prior" or problem.has_slopes
    return problem.kind != "classes" and not (problem.weights == "fractions" and problem.slips != "no slips" and quiet)


@route(is_drawn, is_slow=True)
def draws_and_expectation_propagation(problem: Problem) -> None:
    """Draws are of the posterior that expectation propagation approximates."""
    model = model_of(problem, approximation=None, draw_settings=DrawSettings(num_draws=1024, seed=2))
    X, judges = new_points(problem), judges_asked(problem)
    one, other = moments(model, X, judges), moments(model_of(problem), X, judges)
    other["mean"] = other["mean"].reshape(one["mean"].shape)
    sd = other["sd"].reshape(one["mean"].shape)
    assert ((one["mean"] - other["mean"]).abs() <= 0.35 * sd).all(), f"{one['mean']} {other['mean']} {sd}"
    assert ((one["sd"] / other["sd"]).log().abs() <= 0.3).all(), f"{one['sd']} {other['sd']}"


@route(
    lambda problem: (
        problem.kind != "classes"
        and not problem.has_slopes
        and problem.weights == "single"
        and (problem.slips == "no slips" or problem.prior == "Gaussian prior")
    ),
    is_slow=True,
)
def both_samplers(problem: Problem) -> None:
    """Both samplers draw from one posterior."""
    X, judges = new_points(problem), judges_asked(problem)
    said = [
        moments(
            model_of(problem, approximation=None, draw_settings=DrawSettings(1024, sampler=name, seed=3)), X, judges
        )
        for name in ("reflective", "hamiltonian")
    ]
    sd = said[0]["sd"].reshape(said[0]["mean"].shape)
    assert ((said[0]["mean"] - said[1]["mean"]).abs() <= 0.2 * sd).all()
    assert ((said[0]["sd"] / said[1]["sd"]).log().abs() <= 0.2).all()


@route(is_drawn, is_slow=True)
def copies_of_draws(problem: Problem) -> None:
    """A copy of a model draws what the model draws, whatever was asked before."""
    X, judges = new_points(problem), judges_asked(problem)
    model = model_of(problem, approximation=None)
    other = deepcopy(model)
    before = posterior_of(model, X, judges)
    model.posterior(X.flip(0)[:1]).rsample(torch.Size([3]))
    assert_same(posterior_of(other, X, judges), before)
    assert_same(posterior_of(pickle.loads(pickle.dumps(model)), X, judges), before)
    assert_same({"slips": other.slips()}, {"slips": model.slips()})


LEFT_OUT = {
    "numbers", "known noise", "sums", "labels", "grades", "grades of items", "validity", "duels", "choices", "rankings",
}  # fmt: skip


@route(
    lambda problem: (
        problem.kind in LEFT_OUT
        and problem.weights == "single"
        and problem.judges in ("no judges", "two judges")
        and problem.slips == "no slips"
        and problem.beside == "alone"
        and not problem.standardises
    ),
    is_slow=True,
)
def left_out_and_refitted(problem: Problem) -> None:
    """A leave-one-out density is that of the answer under the model of the others."""
    model = model_of(problem, approximation=None, draw_settings=DrawSettings(num_draws=2048, seed=1))
    entry = model.observations[0]
    left = leave_one_out(model)
    for i in (4, 5):
        rest = take(entry, torch.arange(entry.num_answers) != i)
        without = model_of(problem, observations=[rest])
        with_it = model_of(problem, observations=[rest, take(entry, torch.tensor([i]))])
        right = with_it.log_marginal_likelihood("ep").value - without.log_marginal_likelihood("ep").value
        if float(left.effective_size[i]) > 100:
            assert abs(float(left.log_predictive[i] - right)) < 0.15, f"{left.log_predictive[i]} for {right}"
