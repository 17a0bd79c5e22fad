"""Every acquisition function and objective of BoTorch: how it is built on a model, or why it is not."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

import botorch.acquisition as package
import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.cost_aware import InverseCostWeightedUtility
from botorch.acquisition.multi_objective.objective import MCMultiOutputObjective
from botorch.acquisition.objective import MCAcquisitionObjective, PosteriorTransform
from botorch.acquisition.penalized import L2Penalty
from botorch.acquisition.utils import project_to_target_fidelity
from botorch.models.cost import AffineFidelityCostModel
from botorch.models.model import ModelList
from botorch.sampling.list_sampler import ListSampler
from botorch.sampling.normal import SobolQMCNormalSampler
from botorch.utils.multi_objective.box_decompositions import (
    DominatedPartitioning,
    FastNondominatedPartitioning,
    NondominatedPartitioning,
)
from contract_cases import DIM, NUM_PERTURBATIONS, Case, tensor
from torch import Tensor


def botorch_classes() -> set[type]:
    """All acquisition functions, objectives and posterior transforms that BoTorch defines, without base classes."""
    names = (module.name for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."))
    return {
        member
        for module in [package, *map(importlib.import_module, names)]
        for member in vars(module).values()
        if inspect.isclass(member)
        and member.__module__ == module.__name__
        and issubclass(member, AcquisitionFunction | MCAcquisitionObjective | PosteriorTransform)
        and not inspect.isabstract(member)
    }


C = SimpleNamespace(**{entry.__name__: entry for entry in botorch_classes()})
NUM_SAMPLES = 32
NUM_FANTASIES = 4
DIRECT, MOMENTS, MATCHED = "works", "works on mean and variance", "works through MomentMatchedModel"


@dataclass(frozen=True)
class Entry:
    """How one acquisition function is built, and what can be expected of it."""

    target: type
    build: Callable[[Case], AcquisitionFunction]
    variant: str = ""  # tells apart several entries of one class
    route: str = DIRECT  # whether it sees the skewed posterior, only mean and variance of it, or a Gaussian model
    qs: tuple[int, ...] = (1, 2)  # the numbers of candidates at once that it takes
    fantasies: bool = False  # whether it makes fantasies, for which comparisons need two candidates
    # with pending points the value is that of all points together ("joint"), or another; `None` if they are refused
    pending: str | None = "joint"
    outputs: int | None = None  # the number of values for each candidate set, if several
    dim: int = DIM
    may_be_flat: bool = False  # whether value and gradient are zero where no draw improves
    pending_seed: int = 21  # seeds the candidate at which pending points must count
    gradient_batch: int = 2  # the number of candidate sets that gradients are checked for at once
    jumps: bool = False  # here and there: samples of fantasies pick draws by weights, which move with the candidates
    left_out: dict[str, str] = field(default_factory=dict)  # checks that do not apply, with reasons
    left_out_for_duels: dict[str, str] = field(default_factory=dict)  # where fantasies are comparisons

    def reason(self, check: str, case: Case) -> str | None:
        """Why a check does not apply; `None` if it does."""
        duels = self.left_out_for_duels.get(check) if case.fantasies_are_duels else None
        return self.left_out.get(check, duels)

    @property
    def name(self) -> str:
        return self.target.__name__ + (f" ({self.variant})" if self.variant else "")

    def sizes(self, case: Case) -> tuple[int, ...]:
        """The numbers of candidates to try."""
        return tuple(q for q in self.qs if q > 1 or not (self.fantasies and case.fantasies_are_duels))


def sampler(num_samples: int = NUM_SAMPLES) -> SobolQMCNormalSampler:
    return SobolQMCNormalSampler(torch.Size([num_samples]), seed=3)


def sampler_of_two(num_samples: int = NUM_SAMPLES) -> ListSampler:
    """A sampler for a list of two models."""
    return ListSampler(*(SobolQMCNormalSampler(torch.Size([num_samples]), seed=seed) for seed in (3, 4)))


def grid(n: int, seed: int = 11) -> Tensor:
    return torch.rand(n, DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def constraint(Y: Tensor) -> Tensor:
    """The second output is to be above -2, which some of the training points are nearly sure to fulfil."""
    return -2.0 - Y[..., -1]


def first_output() -> C.MCAcquisitionObjective:
    return C.LinearMCObjective(tensor([1.0, 0.0]))


def partitioning(c: Case) -> FastNondominatedPartitioning:
    return FastNondominatedPartitioning(c.ref_point, c.means)


def optima(c: Case) -> dict[str, Tensor]:
    """Points that could be optimal, with values there."""
    X = grid(3, seed=12)
    with torch.no_grad():
        return {"optimal_inputs": X, "optimal_outputs": c.model.posterior(X).mean + 0.5}


def pareto(c: Case, *names: str) -> dict[str, Tensor]:
    """Some of: Pareto sets, fronts and the boxes that they dominate."""
    fronts = c.means.amax(0) + tensor([[[0.3, 0.1], [0.1, 0.3]], [[0.2, 0.1], [0.0, 0.4]]])
    boxes = torch.stack([DominatedPartitioning(c.ref_point - 3.0, f).get_hypercell_bounds() for f in fronts])
    boxes = torch.stack([boxes[:, 0].clamp_min(-1e10), boxes[:, 1]], dim=1)
    every = {"pareto_sets": grid(4, seed=13).view(2, 2, DIM), "pareto_fronts": fronts, "hypercell_bounds": boxes}
    return {name: every[name] for name in names}


def cost() -> InverseCostWeightedUtility:
    return InverseCostWeightedUtility(AffineFidelityCostModel({DIM - 1: 1.0}, fixed_cost=2.0).double())


def project(X: Tensor) -> Tensor:
    return project_to_target_fidelity(X, target_fidelities={DIM - 1: 1.0}, d=DIM)


class Prior(torch.nn.Module):
    """A belief about where the optimum is."""

    def forward(self, X: Tensor) -> Tensor:
        return torch.exp(-(X - 0.5).square().sum(-1))


class Distance(torch.nn.Module):
    """A penalty objective."""

    def forward(self, X: Tensor) -> Tensor:
        return (X - 0.5).square().sum(-1).unsqueeze(0)


def learned_objective(c: Case) -> AcquisitionFunction:
    """Two outcomes, with a model that learned the utility of pairs of them."""
    utility = C.LearnedObjective(c.model, torch.Size([8]), seed=4)
    return C.qSimpleRegret(c.objectives, sampler=sampler_of_two(8), objective=utility)


def feasibility_weighted(c: Case) -> AcquisitionFunction:
    """Two objectives, and the second also as a constraint."""
    model = ModelList(*c.objectives.models, c.objectives.models[1])
    weighted = C.FeasibilityWeightedMCMultiOutputObjective(model, c.train_X, constraint_idcs=[2])
    samplers = ListSampler(sampler(), *sampler_of_two().samplers)
    return C.qExpectedHypervolumeImprovement(model, c.ref_point, partitioning(c), sampler=samplers, objective=weighted)


def mars(c: Case) -> AcquisitionFunction:
    risk = C.MARS(0.5, NUM_PERTURBATIONS, chebyshev_weights=[0.4, 0.6])
    risk.set_baseline_Y(c.perturbed_objectives, c.train_X)
    return C.qLogExpectedImprovement(c.perturbed_objectives, best_f=0.0, sampler=sampler_of_two(), objective=risk)


T_BATCH_MIXED = "BoTorch mixes t-batches: it reshapes points of fantasies across them"
PES_GRADIENT = "BoTorch advises against its gradients: damping is chosen by halving"
ONE_PENDING = "BoTorch makes a fantasy at every pending point, and a comparison needs two"
ONE_POINT = (1,)


def built(
    target: type,
    given: Callable[[Case], dict] = lambda c: {},
    of: str | Callable[[Case], object] = "model",
    draws: int = 0,
    **options,
) -> Entry:
    """The entry of `target(model, **given)`, with a sampler if there are draws."""

    def build(c: Case) -> AcquisitionFunction:
        made = (sampler_of_two if "objectives" in of else sampler)(draws) if draws else None
        return target(of(c) if callable(of) else getattr(c, of), **given(c), **({"sampler": made} if draws else {}))

    return Entry(target, build, **options)


def handed(target: type, *arguments, of: str = "model", **options) -> Entry:
    """The entry of an objective that is handed to a Monte Carlo function."""

    def build(c: Case) -> AcquisitionFunction:
        given = {"sampler": (sampler_of_two if "objectives" in of else sampler)(), "objective": target(*arguments)}
        if issubclass(target, MCMultiOutputObjective):
            return C.qLogExpectedHypervolumeImprovement(getattr(c, of), c.ref_point, partitioning(c), **given)
        return C.qSimpleRegret(getattr(c, of), **given)

    return Entry(target, build, **options)


def entries() -> list[Entry]:
    """All that can be built."""
    B, E, H, n = built, Entry, handed, NUM_SAMPLES
    two, two_perturbed = {"of": "objectives"}, {"of": "perturbed_objectives"}
    refused = {"pending": None}
    other = {"pending": "other"}
    ahead = {"fantasies": True}
    flat = {"may_be_flat": True}
    by_moments = {"route": MOMENTS, "qs": ONE_POINT, **refused}
    pair_by_moments = {**by_moments, "qs": (2,)}
    matched, both_matched = ({"of": of, "route": MATCHED} for of in ("gaussian", "gaussian_objectives"))
    no_slope = {"left_out": {"gradient": PES_GRADIENT, "optimise": PES_GRADIENT}}
    several = {"outputs": 2, "left_out": {"optimise": "several values at once: for multi-objective optimisers"}}
    with_constraint = {"variant": "an output as constraint"}
    above_zero = {1: (0.0, None)}

    def half(c: Case) -> dict:
        return {"posterior_transform": C.ScalarizedPosteriorTransform(tensor([0.5, 0.5]))}

    def best(c: Case) -> dict:
        return {"best_f": c.best_f}

    def baseline(c: Case) -> dict:
        return {"X_baseline": c.train_X}

    def ref(c: Case) -> dict:
        return {"ref_point": c.ref_point}

    def noisy(c: Case) -> dict:
        return {**ref(c), **baseline(c)}

    def beta(c: Case) -> dict:
        return {"beta": 2.0}

    def boxes(c: Case) -> dict:
        return {**ref(c), "partitioning": partitioning(c)}

    def constrained(c: Case) -> dict:
        return {"objective": first_output(), "constraints": [constraint]}

    def at_fidelity(c: Case) -> dict:
        return {"cost_aware_utility": cost(), "project": project}

    def entropy(c: Case) -> dict:
        return {"candidate_set": grid(16)}

    def fantasised(c: Case) -> dict:
        return {**entropy(c), "num_fantasies": 4, "num_y_samples": 16}

    def regret(c: Case, of: str = "model", transform: PosteriorTransform | None = None) -> C.qSimpleRegret:
        return C.qSimpleRegret(getattr(c, of), sampler=sampler(), posterior_transform=transform)

    return [
        # analytic: mean and variance
        *(B(target, best, **by_moments) for target in (C.LogProbabilityOfImprovement, C.ProbabilityOfImprovement)),
        *(B(target, best, **by_moments) for target in (C.ExpectedImprovement, C.LogExpectedImprovement)),
        B(C.LogExpectedImprovement, lambda c: {"best_f": 0.0, **half(c)}, **two,
          variant="two outputs, scalarised", **by_moments),
        *(
            B(target, lambda c: {**best(c), "objective_index": 0, "constraints": above_zero}, **two, **by_moments)
            for target in (C.LogConstrainedExpectedImprovement, C.ConstrainedExpectedImprovement)
        ),
        B(C.LogProbabilityOfFeasibility, lambda c: {"constraints": above_zero}, **two, **by_moments),
        B(C.UpperConfidenceBound, beta, **by_moments),
        *(B(target, **by_moments) for target in (C.PosteriorMean, C.PosteriorStandardDeviation)),
        B(C.ScalarizedPosteriorMean, lambda c: {"weights": tensor([0.3, 0.7])}, **pair_by_moments),
        B(C.AnalyticExpectedUtilityOfBestOption, **pair_by_moments),
        B(C.AnalyticExpectedUtilityOfBestOption, lambda c: {"previous_winner": grid(1)},
          variant="previous winner", **by_moments),
        B(C.PairwiseBayesianActiveLearningByDisagreement, lambda c: {"num_samples": 64},
          left_out=dict.fromkeys(("gradient", "t-batch", "repeat", "optimise"), _REDRAWN), **pair_by_moments),
        B(C.ExpectedHypervolumeImprovement,
          lambda c: {"ref_point": c.ref_point.tolist(), "partitioning": NondominatedPartitioning(c.ref_point, c.means)},
          **two, **by_moments),
        B(C.MultiOutputPosteriorMean, **two, **by_moments, **several),
        # Monte Carlo
        *(B(target, draws=n) for target in (C.qExpectedUtilityOfBestOption, C.qSimpleRegret,
                                            C.qPosteriorStandardDeviation)),
        B(C.qExpectedUtilityOfBestOption, variant="its own sampler",
          left_out={"pending": "the seed is drawn at the first evaluation", "optimise": _AS_ABOVE}),
        B(C.qExpectedImprovement, lambda c: {"best_f": c.best_f - 0.5}, draws=n, **flat),
        B(C.qExpectedImprovement, lambda c: {"best_f": c.best_f - 0.5, **constrained(c)}, draws=n, **two, **flat,
          **with_constraint),
        B(C.qNoisyExpectedImprovement, baseline, draws=n, **flat),
        B(C.qProbabilityOfImprovement, lambda c: {**best(c), "tau": 0.1}, draws=n),
        *(B(target, beta, draws=n) for target in (C.qUpperConfidenceBound, C.qLowerConfidenceBound)),
        B(C.qLogExpectedImprovement, best, draws=n),
        B(C.qLogExpectedImprovement, lambda c: {**best(c), **constrained(c)}, draws=n, **two, **with_constraint),
        B(C.qLogNoisyExpectedImprovement, baseline, draws=n, **other),
        B(C.qLogNoisyExpectedImprovement, lambda c: {**baseline(c), **constrained(c)}, draws=n, **two, **other,
          **with_constraint),
        B(C.qLogProbabilityOfFeasibility, lambda c: {"constraints": [constraint]}, draws=n, **two),
        B(C.PairwiseMCPosteriorVariance, lambda c: {"objective": _first()}, draws=n, qs=(2,), **refused),
        B(C.PathwiseThompsonSampling, **refused,
          left_out={"t-batch": "BoTorch reads the first evaluation's number of candidates as that of draws"}),
        # look-ahead
        B(C.qNegIntegratedPosteriorVariance, lambda c: {"mc_points": grid(8)}, **ahead),
        B(C.qKnowledgeGradient, lambda c: {"num_fantasies": None}, draws=NUM_FANTASIES, **ahead),
        B(C.qKnowledgeGradient,
          lambda c: {"num_fantasies": None, "objective": C.GenericMCObjective(_tanh), "inner_sampler": sampler(8)},
          draws=NUM_FANTASIES, variant="objective", jumps=True, left_out={"optimise": _AS_ABOVE}, **ahead),
        B(C.qMultiFidelityKnowledgeGradient,
          lambda c: {"num_fantasies": None, "current_value": tensor(-2.0), **at_fidelity(c)},
          draws=NUM_FANTASIES, **ahead, **other),
        E(C.ProjectedAcquisitionFunction, lambda c: C.ProjectedAcquisitionFunction(regret(c), project), **refused),
        B(C.qMultiStepLookahead,
          lambda c: {"batch_sizes": [2 if c.fantasies_are_duels else 1, 1], "samplers": [sampler(2), sampler(2)]},
          left_out_for_duels={"t-batch": T_BATCH_MIXED}, **ahead),
        # several objectives
        B(C.qExpectedHypervolumeImprovement, boxes, draws=n, **two, **flat),
        B(C.qNoisyExpectedHypervolumeImprovement, noisy, draws=8, **two, **flat, **other),
        B(C.qNoisyExpectedHypervolumeImprovement, lambda c: {**noisy(c), "constraints": [constraint]}, draws=8,
          left_out={"optimise": _AS_ABOVE}, **two, **flat, **other, **with_constraint),
        B(C.qLogExpectedHypervolumeImprovement, boxes, draws=n, **two),
        B(C.qLogNoisyExpectedHypervolumeImprovement, noisy, draws=8, **two, **other),
        B(C.qLogNParEGO, lambda c: {**baseline(c), "scalarization_weights": tensor([0.4, 0.6])}, draws=n, **two,
          **other),
        B(C.MOMF, boxes, draws=n, **two, **flat, **other),
        B(C.qHypervolumeKnowledgeGradient, lambda c: {**ref(c), "num_fantasies": 2, "num_pareto": 2}, **two,
          left_out={"t-batch": T_BATCH_MIXED}, **ahead),
        B(C.qMultiFidelityHypervolumeKnowledgeGradient,
          lambda c: {**ref(c), "target_fidelities": {DIM - 1: 1.0}, "num_fantasies": 2, "num_pareto": 2,
                     "project": project},
          left_out={"t-batch": T_BATCH_MIXED}, **two, **ahead),
        # around other functions
        B(C.FixedFeatureAcquisitionFunction, lambda c: {"d": DIM, "columns": [1], "values": [0.4]}, regret, dim=DIM - 1,
          **refused),
        B(C.PenalizedAcquisitionFunction,
          lambda c: {"penalty_func": L2Penalty(tensor([[0.5, 0.5]])), "regularization_parameter": 0.1}, regret,
          **other),
        B(C.PriorGuidedAcquisitionFunction, lambda c: {"prior_module": Prior()}, regret),
        B(C.ProximalAcquisitionFunction, lambda c: {"proximal_weights": tensor([0.5, 0.5])},
          lambda c: C.ExpectedImprovement(c.model, c.best_f), qs=ONE_POINT, **refused),
        B(C.MultiOutputAcquisitionFunctionWrapper,
          of=lambda c: [regret(c), C.qUpperConfidenceBound(c.model, 1.0, sampler=sampler())], **refused, **several),
        # Gaussian by construction
        B(C.qAnalyticProbabilityOfImprovement, best, **matched, **refused,
          gradient_batch=1),  # BoTorch's MVNXPB loses derivatives of a batch whose members are ordered differently
        B(C.qMaxValueEntropy, fantasised, qs=ONE_POINT, left_out_for_duels={"sequential": ONE_PENDING}, **matched,
          **other, pending_seed=49),  # at that of the others a mean is so low that the value is at BoTorch's clamps
        B(C.qMultiFidelityMaxValueEntropy, lambda c: {**fantasised(c), **at_fidelity(c)}, qs=ONE_POINT,
          left_out_for_duels={"sequential": ONE_PENDING}, **matched, **other),
        B(C.qLowerBoundMaxValueEntropy, entropy, qs=ONE_POINT, **matched, **other),
        B(C.qMultiFidelityLowerBoundMaxValueEntropy, lambda c: {**fantasised(c), **at_fidelity(c)}, qs=ONE_POINT,
          **matched, **other),
        *(
            B(C.qJointEntropySearch, lambda c, kind=kind: {**optima(c), "estimation_type": kind, "num_samples": 16},
              variant=kind, **matched)
            for kind in ("LB", "MC")
        ),
        B(C.qPredictiveEntropySearch, lambda c: {"optimal_inputs": optima(c)["optimal_inputs"]}, **no_slope, **matched),
        B(C.qMultiObjectivePredictiveEntropySearch, lambda c: pareto(c, "pareto_sets"), **no_slope, **both_matched),
        B(C.qLowerBoundMultiObjectiveMaxValueEntropySearch, lambda c: pareto(c, "hypercell_bounds"), **both_matched),
        B(C.qLowerBoundMultiObjectiveJointEntropySearch,
          lambda c: pareto(c, "pareto_sets", "pareto_fronts", "hypercell_bounds"), **both_matched),
        # objectives and posterior transforms
        H(C.IdentityMCObjective),
        H(C.LinearMCObjective, tensor([0.3, 0.7]), **two),
        H(C.GenericMCObjective, _tanh),
        H(C.ConstrainedMCObjective, _first_value, [constraint], 3.0, 0.1, **two),
        E(C.LearnedObjective, learned_objective),
        H(C.PenalizedMCObjective, _first_value, Distance(), 0.3),
        E(C.ScalarizedPosteriorTransform,
          lambda c: regret(c, transform=C.ScalarizedPosteriorTransform(tensor([-2.0]), 1.0))),
        E(C.ExpectationPosteriorTransform,
          lambda c: regret(c, "perturbed", C.ExpectationPosteriorTransform(NUM_PERTURBATIONS).double())),
        *(H(target, NUM_PERTURBATIONS, of="perturbed") for target in (C.Expectation, C.WorstCase)),
        *(H(target, 0.5, NUM_PERTURBATIONS, of="perturbed") for target in (C.CVaR, C.VaR)),
        E(C.CVaR,
          lambda c: C.qNoisyExpectedImprovement(
              c.perturbed, c.train_X, sampler=sampler(), objective=C.CVaR(0.5, NUM_PERTURBATIONS)),
          variant="qNoisyExpectedImprovement", **flat),
        H(C.IdentityMCMultiOutputObjective, **two),
        H(C.GenericMCMultiOutputObjective, lambda Y, X=None: 1.5 * Y, **two),
        H(C.WeightedMCMultiOutputObjective, tensor([1.0, 0.5]), **two),
        E(C.FeasibilityWeightedMCMultiOutputObjective, feasibility_weighted, **flat),
        H(C.MultiOutputExpectation, NUM_PERTURBATIONS, **two_perturbed),
        H(C.MultiOutputWorstCase, NUM_PERTURBATIONS, **two_perturbed),
        *(H(target, 0.5, NUM_PERTURBATIONS, **two_perturbed) for target in (C.IndependentCVaR, C.IndependentVaR)),
        H(C.MVaR, NUM_PERTURBATIONS, 0.5, True, **two_perturbed,
          left_out={"gradient": "BoTorch's gradients of MVaR are approximate on purpose",
                    "optimise": "BoTorch enumerates all subsets of a set that can get large"}),
        E(C.MARS, mars),
    ]  # fmt: skip


_REDRAWN = "BoTorch's function draws new samples at every evaluation"
_AS_ABOVE = "checked in another row of this function"


def _first_value(Y: Tensor, X: Tensor | None = None) -> Tensor:
    return Y[..., 0]


def _tanh(Y: Tensor, X: Tensor | None = None) -> Tensor:
    return Y[..., 0].tanh()


def _first() -> C.MCAcquisitionObjective:
    return C.GenericMCObjective(_first_value)


_SINGLE_TASK_GP = (
    "impossible: BoTorch's code demands a SingleTaskGP with known noise and builds another from its targets; "
    "qLogNoisyExpectedImprovement has no such demand"
)
IMPOSSIBLE = {
    C.LogNoisyExpectedImprovement: _SINGLE_TASK_GP,
    C.NoisyExpectedImprovement: _SINGLE_TASK_GP,
    C.qBayesianActiveLearningByDisagreement: (
        "impossible: BoTorch's code demands a fully Bayesian model; it is about hyperparameters, of which this model "
        "has one set"
    ),
}
