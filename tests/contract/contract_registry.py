"""Every acquisition function and objective of BoTorch: how it is built on a model, or why it is not."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import botorch.acquisition as package
import torch
from botorch.acquisition import (
    acquisition,
    active_learning,
    analytic,
    bayesian_active_learning,
    decoupled,
    fixed_feature,
    joint_entropy_search,
    knowledge_gradient,
    logei,
    monte_carlo,
    multi_step_lookahead,
    multioutput_acquisition,
    objective,
    penalized,
    predictive_entropy_search,
    preference,
    prior_guided,
    proximal,
    risk_measures,
    thompson_sampling,
)
from botorch.acquisition import max_value_entropy_search as mes
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.cost_aware import InverseCostWeightedUtility
from botorch.acquisition.multi_objective import analytic as mo_analytic
from botorch.acquisition.multi_objective import base as mo_base
from botorch.acquisition.multi_objective import hypervolume_knowledge_gradient as hvkg
from botorch.acquisition.multi_objective import joint_entropy_search as mo_jes
from botorch.acquisition.multi_objective import logei as mo_logei
from botorch.acquisition.multi_objective import max_value_entropy_search as mo_mes
from botorch.acquisition.multi_objective import monte_carlo as mo_mc
from botorch.acquisition.multi_objective import multi_fidelity, multi_output_risk_measures, parego
from botorch.acquisition.multi_objective import objective as mo_objective
from botorch.acquisition.multi_objective import predictive_entropy_search as mo_pes
from botorch.acquisition.objective import MCAcquisitionObjective, PosteriorTransform
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

NUM_SAMPLES = 32
NUM_FANTASIES = 4
DIRECT, MOMENTS, MATCHED = "works", "works on mean and variance", "works through MomentMatchedModel"


@dataclass(frozen=True)
class Entry:
    """How one acquisition function is built, and what can be expected of it.

    Args:
        target: The class that this entry is about.
        build: Builds an acquisition function on a case.
        variant: Tells apart several entries of one class.
        route: Whether the function sees the skewed posterior, only mean and variance of it, or a Gaussian model.
        qs: The numbers of candidates at once that it takes.
        fantasies: Whether it makes fantasies, for which comparisons need two candidates.
        pending: `"joint"` if the value with pending points is that of candidates and pending points together,
            `"other"` if the value merely changes, and `None` if pending points are refused.
        outputs: The number of values for each candidate set, if several.
        dim: The dimension of the candidates.
        may_be_flat: Whether value and gradient are zero where no draw improves.
        pending_seed: Seeds the candidate at which pending points must count.
        gradient_batch: The number of candidate sets that gradients are checked for at once.
        jumps: Whether the value jumps here and there: samples of fantasies pick draws by weights, which move with the
            candidates.
        left_out: Checks that do not apply, with reasons.
        left_out_for_duels: Those that do not apply where fantasies are comparisons.
    """

    target: type
    build: Callable[[Case], AcquisitionFunction]
    variant: str = ""
    route: str = DIRECT
    qs: tuple[int, ...] = (1, 2)
    fantasies: bool = False
    pending: str | None = "joint"
    outputs: int | None = None
    dim: int = DIM
    may_be_flat: bool = False
    pending_seed: int = 21
    gradient_batch: int = 2
    jumps: bool = False
    left_out: dict[str, str] = field(default_factory=dict)
    left_out_for_duels: dict[str, str] = field(default_factory=dict)

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


def first_output() -> objective.MCAcquisitionObjective:
    return objective.LinearMCObjective(tensor([1.0, 0.0]))


def partitioning(c: Case) -> FastNondominatedPartitioning:
    return FastNondominatedPartitioning(c.ref_point, c.means)


def optima(c: Case) -> tuple[Tensor, Tensor]:
    """Points that could be optimal, with values there."""
    X = grid(3, seed=12)
    with torch.no_grad():
        return X, c.model.posterior(X).mean + 0.5


def pareto(c: Case) -> tuple[Tensor, Tensor, Tensor]:
    """Pareto sets, fronts and the boxes that they dominate."""
    sets = grid(4, seed=13).view(2, 2, DIM)
    front = c.means.amax(0) + tensor([[[0.3, 0.1], [0.1, 0.3]], [[0.2, 0.1], [0.0, 0.4]]])
    boxes = torch.stack([_dominated(c, f) for f in front])
    return sets, front, boxes


def _dominated(c: Case, front: Tensor) -> Tensor:
    boxes = DominatedPartitioning(c.ref_point - 3.0, front).get_hypercell_bounds()
    return torch.stack([boxes[0].clamp_min(-1e10), boxes[1]])


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


def with_objective(make: Callable[[], MCAcquisitionObjective], perturbed: bool = False, outputs: int = 1):
    """A Monte Carlo function that is handed an objective."""

    def build(c: Case) -> AcquisitionFunction:
        if outputs == 1:
            model = c.perturbed if perturbed else c.model
            return monte_carlo.qSimpleRegret(model, sampler=sampler(), objective=make())
        model = c.perturbed_objectives if perturbed else c.objectives
        return mo_logei.qLogExpectedHypervolumeImprovement(
            model, c.ref_point, partitioning(c), sampler=sampler_of_two(), objective=make()
        )

    return build


def of_both(make: Callable[[], MCAcquisitionObjective]) -> Callable[[Case], AcquisitionFunction]:
    """A Monte Carlo function that is handed an objective of two outputs."""
    return lambda c: monte_carlo.qSimpleRegret(c.objectives, sampler=sampler_of_two(), objective=make())


def learned_objective(c: Case) -> AcquisitionFunction:
    """Two outcomes, with a model that learned the utility of pairs of them."""
    utility = objective.LearnedObjective(c.model, torch.Size([8]), seed=4)
    return monte_carlo.qSimpleRegret(c.objectives, sampler=sampler_of_two(8), objective=utility)


def feasibility_weighted(c: Case) -> AcquisitionFunction:
    """Two objectives, and the second also as a constraint."""
    model = ModelList(*c.objectives.models, c.objectives.models[1])
    weighted = mo_objective.FeasibilityWeightedMCMultiOutputObjective(model, c.train_X, constraint_idcs=[2])
    samplers = ListSampler(sampler(), *sampler_of_two().samplers)
    return mo_mc.qExpectedHypervolumeImprovement(
        model, c.ref_point, partitioning(c), sampler=samplers, objective=weighted
    )


def mars(c: Case) -> AcquisitionFunction:
    risk = multi_output_risk_measures.MARS(0.5, NUM_PERTURBATIONS, chebyshev_weights=[0.4, 0.6])
    risk.set_baseline_Y(c.perturbed_objectives, c.train_X)
    return logei.qLogExpectedImprovement(c.perturbed_objectives, best_f=0.0, sampler=sampler_of_two(), objective=risk)


T_BATCH_MIXED = "BoTorch mixes t-batches: it reshapes points of fantasies across them"
PES_GRADIENT = "BoTorch advises against its gradients: damping is chosen by halving"
ONE_PENDING = "BoTorch makes a fantasy at every pending point, and a comparison needs two"
ONE_POINT = (1,)


def built(
    target: type, given: Callable[[Case], dict] = lambda c: {}, of: str = "model", draws: int = 0, **options
) -> Entry:
    """The entry of `target(model, **given)`, with a sampler if there are draws."""

    def build(c: Case) -> AcquisitionFunction:
        made = (sampler_of_two if "objectives" in of else sampler)(draws) if draws else None
        return target(getattr(c, of), **given(c), **({"sampler": made} if draws else {}))

    return Entry(target, build, **options)


def entries() -> list[Entry]:
    """All that can be built."""
    B, E, n = built, Entry, NUM_SAMPLES
    obj, mor, rm, kg, mc = objective, multi_output_risk_measures, risk_measures, knowledge_gradient, monte_carlo
    two = {"of": "objectives"}
    refused = {"pending": None}
    other = {"pending": "other"}
    ahead = {"fantasies": True}
    flat = {"may_be_flat": True}
    by_moments = {"route": MOMENTS, "qs": ONE_POINT, **refused}
    pair_by_moments = {**by_moments, "qs": (2,)}
    matched = {"of": "gaussian", "route": MATCHED}
    several = {"outputs": 2, "left_out": {"optimise": "several values at once: for multi-objective optimisers"}}
    with_constraint = {"variant": "an output as constraint"}
    above_zero = {1: (0.0, None)}

    def half(c: Case) -> dict:
        return {"posterior_transform": obj.ScalarizedPosteriorTransform(tensor([0.5, 0.5]))}

    def best(c: Case) -> dict:
        return {"best_f": c.best_f}

    def baseline(c: Case) -> dict:
        return {"X_baseline": c.train_X}

    def ref(c: Case) -> dict:
        return {"ref_point": c.ref_point}

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

    def regret(c: Case) -> mc.qSimpleRegret:
        return mc.qSimpleRegret(c.model, sampler=sampler())

    return [
        # analytic: mean and variance
        *(
            B(target, best, **by_moments)
            for target in (
                analytic.LogProbabilityOfImprovement,
                analytic.ProbabilityOfImprovement,
                analytic.ExpectedImprovement,
                analytic.LogExpectedImprovement,
            )
        ),
        B(analytic.LogExpectedImprovement, lambda c: {"best_f": 0.0, **half(c)}, **two,
          variant="two outputs, scalarised", **by_moments),
        *(
            B(target, lambda c: {**best(c), "objective_index": 0, "constraints": above_zero}, **two, **by_moments)
            for target in (analytic.LogConstrainedExpectedImprovement, analytic.ConstrainedExpectedImprovement)
        ),
        B(analytic.LogProbabilityOfFeasibility, lambda c: {"constraints": above_zero}, **two, **by_moments),
        B(analytic.UpperConfidenceBound, lambda c: {"beta": 2.0}, **by_moments),
        B(analytic.PosteriorMean, **by_moments),
        B(analytic.PosteriorStandardDeviation, **by_moments),
        B(analytic.ScalarizedPosteriorMean, lambda c: {"weights": tensor([0.3, 0.7])}, **pair_by_moments),
        B(preference.AnalyticExpectedUtilityOfBestOption, **pair_by_moments),
        B(preference.AnalyticExpectedUtilityOfBestOption, lambda c: {"previous_winner": grid(1)},
          variant="previous winner", **by_moments),
        B(preference.PairwiseBayesianActiveLearningByDisagreement, lambda c: {"num_samples": 64},
          left_out=dict.fromkeys(("gradient", "t-batch", "repeat", "optimise"), _REDRAWN), **pair_by_moments),
        B(mo_analytic.ExpectedHypervolumeImprovement,
          lambda c: {"ref_point": c.ref_point.tolist(), "partitioning": NondominatedPartitioning(c.ref_point, c.means)},
          **two, **by_moments),
        B(multioutput_acquisition.MultiOutputPosteriorMean, **two, **by_moments, **several),
        # Monte Carlo
        B(preference.qExpectedUtilityOfBestOption, draws=n),
        B(preference.qExpectedUtilityOfBestOption, variant="its own sampler",
          left_out={"pending": "the seed is drawn at the first evaluation", "optimise": _AS_ABOVE}),
        B(mc.qExpectedImprovement, lambda c: {"best_f": c.best_f - 0.5}, draws=n, **flat),
        B(mc.qExpectedImprovement, lambda c: {"best_f": c.best_f - 0.5, **constrained(c)}, draws=n, **two, **flat,
          **with_constraint),
        B(mc.qNoisyExpectedImprovement, baseline, draws=n, **flat),
        B(mc.qProbabilityOfImprovement, lambda c: {**best(c), "tau": 0.1}, draws=n),
        B(mc.qSimpleRegret, draws=n),
        B(mc.qUpperConfidenceBound, lambda c: {"beta": 2.0}, draws=n),
        B(mc.qLowerConfidenceBound, lambda c: {"beta": 2.0}, draws=n),
        B(mc.qPosteriorStandardDeviation, draws=n),
        B(logei.qLogExpectedImprovement, best, draws=n),
        B(logei.qLogExpectedImprovement, lambda c: {**best(c), **constrained(c)}, draws=n, **two, **with_constraint),
        B(logei.qLogNoisyExpectedImprovement, baseline, draws=n, **other),
        B(logei.qLogNoisyExpectedImprovement, lambda c: {**baseline(c), **constrained(c)}, draws=n, **two, **other,
          **with_constraint),
        B(logei.qLogProbabilityOfFeasibility, lambda c: {"constraints": [constraint]}, draws=n, **two),
        B(active_learning.PairwiseMCPosteriorVariance, lambda c: {"objective": _first()}, draws=n, qs=(2,), **refused),
        B(thompson_sampling.PathwiseThompsonSampling, **refused,
          left_out={"t-batch": "BoTorch reads the first evaluation's number of candidates as that of draws"}),
        # look-ahead
        B(active_learning.qNegIntegratedPosteriorVariance, lambda c: {"mc_points": grid(8)}, **ahead),
        B(kg.qKnowledgeGradient, lambda c: {"num_fantasies": None}, draws=NUM_FANTASIES, **ahead),
        B(kg.qKnowledgeGradient,
          lambda c: {"num_fantasies": None, "objective": obj.GenericMCObjective(_tanh), "inner_sampler": sampler(8)},
          draws=NUM_FANTASIES, variant="objective", jumps=True, left_out={"optimise": _AS_ABOVE}, **ahead),
        B(kg.qMultiFidelityKnowledgeGradient,
          lambda c: {"num_fantasies": None, "current_value": tensor(-2.0), **at_fidelity(c)},
          draws=NUM_FANTASIES, **ahead, **other),
        E(kg.ProjectedAcquisitionFunction, lambda c: kg.ProjectedAcquisitionFunction(regret(c), project), **refused),
        B(multi_step_lookahead.qMultiStepLookahead,
          lambda c: {"batch_sizes": [2 if c.fantasies_are_duels else 1, 1], "samplers": [sampler(2), sampler(2)]},
          left_out_for_duels={"t-batch": T_BATCH_MIXED}, **ahead),
        # several objectives
        B(mo_mc.qExpectedHypervolumeImprovement, boxes, draws=n, **two, **flat),
        B(mo_mc.qNoisyExpectedHypervolumeImprovement, lambda c: {**ref(c), **baseline(c)}, draws=8, **two, **flat,
          **other),
        B(mo_mc.qNoisyExpectedHypervolumeImprovement,
          lambda c: {**ref(c), **baseline(c), "constraints": [constraint]}, draws=8, left_out={"optimise": _AS_ABOVE},
          **two, **flat, **other, **with_constraint),
        B(mo_logei.qLogExpectedHypervolumeImprovement, boxes, draws=n, **two),
        B(mo_logei.qLogNoisyExpectedHypervolumeImprovement, lambda c: {**ref(c), **baseline(c)}, draws=8, **two,
          **other),
        B(parego.qLogNParEGO, lambda c: {**baseline(c), "scalarization_weights": tensor([0.4, 0.6])}, draws=n, **two,
          **other),
        B(multi_fidelity.MOMF, boxes, draws=n, **two, **flat, **other),
        B(hvkg.qHypervolumeKnowledgeGradient, lambda c: {**ref(c), "num_fantasies": 2, "num_pareto": 2}, **two,
          left_out={"t-batch": T_BATCH_MIXED}, **ahead),
        B(hvkg.qMultiFidelityHypervolumeKnowledgeGradient,
          lambda c: {**ref(c), "target_fidelities": {DIM - 1: 1.0}, "num_fantasies": 2, "num_pareto": 2,
                     "project": project},
          left_out={"t-batch": T_BATCH_MIXED}, **two, **ahead),
        # around other functions
        E(fixed_feature.FixedFeatureAcquisitionFunction,
          lambda c: fixed_feature.FixedFeatureAcquisitionFunction(regret(c), d=DIM, columns=[1], values=[0.4]),
          dim=DIM - 1, **refused),
        E(penalized.PenalizedAcquisitionFunction,
          lambda c: penalized.PenalizedAcquisitionFunction(regret(c), penalized.L2Penalty(tensor([[0.5, 0.5]])), 0.1),
          **other),
        E(prior_guided.PriorGuidedAcquisitionFunction,
          lambda c: prior_guided.PriorGuidedAcquisitionFunction(regret(c), Prior())),
        E(proximal.ProximalAcquisitionFunction,
          lambda c: proximal.ProximalAcquisitionFunction(
              analytic.ExpectedImprovement(c.model, c.best_f), proximal_weights=tensor([0.5, 0.5])),
          qs=ONE_POINT, **refused),
        E(multioutput_acquisition.MultiOutputAcquisitionFunctionWrapper,
          lambda c: multioutput_acquisition.MultiOutputAcquisitionFunctionWrapper(
              [regret(c), mc.qUpperConfidenceBound(c.model, 1.0, sampler=sampler())]),
          **refused, **several),
        # Gaussian by construction
        B(analytic.qAnalyticProbabilityOfImprovement, best, **matched, **refused,
          gradient_batch=1),  # BoTorch's MVNXPB loses derivatives of a batch whose members are ordered differently
        B(mes.qMaxValueEntropy, fantasised, qs=ONE_POINT, left_out_for_duels={"sequential": ONE_PENDING}, **matched,
          **other, pending_seed=49),  # at that of the others a mean is so low that the value is at BoTorch's clamps
        B(mes.qMultiFidelityMaxValueEntropy, lambda c: {**fantasised(c), **at_fidelity(c)}, qs=ONE_POINT,
          left_out_for_duels={"sequential": ONE_PENDING}, **matched, **other),
        B(mes.qLowerBoundMaxValueEntropy, entropy, qs=ONE_POINT, **matched, **other),
        B(mes.qMultiFidelityLowerBoundMaxValueEntropy, lambda c: {**fantasised(c), **at_fidelity(c)}, qs=ONE_POINT,
          **matched, **other),
        *(
            E(joint_entropy_search.qJointEntropySearch,
              lambda c, kind=kind: joint_entropy_search.qJointEntropySearch(
                  c.gaussian, *optima(c), estimation_type=kind, num_samples=16),
              variant=kind, route=MATCHED)
            for kind in ("LB", "MC")
        ),
        B(predictive_entropy_search.qPredictiveEntropySearch, lambda c: {"optimal_inputs": optima(c)[0]},
          left_out={"gradient": PES_GRADIENT, "optimise": PES_GRADIENT}, **matched),
        E(mo_pes.qMultiObjectivePredictiveEntropySearch,
          lambda c: mo_pes.qMultiObjectivePredictiveEntropySearch(c.gaussian_objectives, pareto(c)[0]),
          route=MATCHED, left_out={"gradient": PES_GRADIENT, "optimise": PES_GRADIENT}),
        E(mo_mes.qLowerBoundMultiObjectiveMaxValueEntropySearch,
          lambda c: mo_mes.qLowerBoundMultiObjectiveMaxValueEntropySearch(c.gaussian_objectives, pareto(c)[2]),
          route=MATCHED),
        E(mo_jes.qLowerBoundMultiObjectiveJointEntropySearch,
          lambda c: mo_jes.qLowerBoundMultiObjectiveJointEntropySearch(c.gaussian_objectives, *pareto(c)),
          route=MATCHED),
        # objectives and posterior transforms
        E(obj.IdentityMCObjective, with_objective(obj.IdentityMCObjective)),
        E(obj.LinearMCObjective, of_both(lambda: obj.LinearMCObjective(tensor([0.3, 0.7])))),
        E(obj.GenericMCObjective, with_objective(lambda: obj.GenericMCObjective(_tanh))),
        E(obj.ConstrainedMCObjective,
          of_both(lambda: obj.ConstrainedMCObjective(_first_value, [constraint], infeasible_cost=3.0, eta=0.1))),
        E(obj.LearnedObjective, learned_objective),
        E(penalized.PenalizedMCObjective,
          with_objective(lambda: penalized.PenalizedMCObjective(_first_value, Distance(), 0.3))),
        E(obj.ScalarizedPosteriorTransform,
          lambda c: mc.qSimpleRegret(
              c.model, sampler=sampler(), posterior_transform=obj.ScalarizedPosteriorTransform(tensor([-2.0]), 1.0))),
        E(obj.ExpectationPosteriorTransform,
          lambda c: mc.qSimpleRegret(
              c.perturbed, sampler=sampler(),
              posterior_transform=obj.ExpectationPosteriorTransform(NUM_PERTURBATIONS).double())),
        E(rm.Expectation, with_objective(lambda: rm.Expectation(NUM_PERTURBATIONS), True)),
        E(rm.WorstCase, with_objective(lambda: rm.WorstCase(NUM_PERTURBATIONS), True)),
        E(rm.CVaR, with_objective(lambda: rm.CVaR(0.5, NUM_PERTURBATIONS), True)),
        E(rm.VaR, with_objective(lambda: rm.VaR(0.5, NUM_PERTURBATIONS), True)),
        E(rm.CVaR,
          lambda c: mc.qNoisyExpectedImprovement(
              c.perturbed, c.train_X, sampler=sampler(), objective=rm.CVaR(0.5, NUM_PERTURBATIONS)),
          variant="qNoisyExpectedImprovement", **flat),
        E(mo_objective.IdentityMCMultiOutputObjective,
          with_objective(mo_objective.IdentityMCMultiOutputObjective, outputs=2)),
        E(mo_objective.GenericMCMultiOutputObjective,
          with_objective(lambda: mo_objective.GenericMCMultiOutputObjective(lambda Y, X=None: 1.5 * Y), outputs=2)),
        E(mo_objective.WeightedMCMultiOutputObjective,
          with_objective(lambda: mo_objective.WeightedMCMultiOutputObjective(tensor([1.0, 0.5])), outputs=2)),
        E(mo_objective.FeasibilityWeightedMCMultiOutputObjective, feasibility_weighted, **flat),
        E(mor.MultiOutputExpectation,
          with_objective(lambda: mor.MultiOutputExpectation(NUM_PERTURBATIONS), True, outputs=2)),
        E(mor.IndependentCVaR, with_objective(lambda: mor.IndependentCVaR(0.5, NUM_PERTURBATIONS), True, outputs=2)),
        E(mor.IndependentVaR, with_objective(lambda: mor.IndependentVaR(0.5, NUM_PERTURBATIONS), True, outputs=2)),
        E(mor.MultiOutputWorstCase,
          with_objective(lambda: mor.MultiOutputWorstCase(NUM_PERTURBATIONS), True, outputs=2)),
        E(mor.MVaR, with_objective(lambda: mor.MVaR(NUM_PERTURBATIONS, 0.5, expectation=True), True, outputs=2),
          left_out={"gradient": "BoTorch's gradients of MVaR are approximate on purpose",
                    "optimise": "BoTorch enumerates all subsets of a set that can get large"}),
        E(mor.MARS, mars),
    ]  # fmt: skip


_REDRAWN = "BoTorch's function draws new samples at every evaluation"
_AS_ABOVE = "checked in another row of this function"


def _first_value(Y: Tensor, X: Tensor | None = None) -> Tensor:
    return Y[..., 0]


def _tanh(Y: Tensor, X: Tensor | None = None) -> Tensor:
    return Y[..., 0].tanh()


def _first() -> objective.MCAcquisitionObjective:
    return objective.GenericMCObjective(_first_value)


_SINGLE_TASK_GP = (
    "impossible: BoTorch's code demands a SingleTaskGP with known noise and builds another from its targets; "
    "qLogNoisyExpectedImprovement has no such demand"
)
IMPOSSIBLE = {
    analytic.LogNoisyExpectedImprovement: _SINGLE_TASK_GP,
    analytic.NoisyExpectedImprovement: _SINGLE_TASK_GP,
    bayesian_active_learning.qBayesianActiveLearningByDisagreement: (
        "impossible: BoTorch's code demands a fully Bayesian model; it is about hyperparameters, of which this model "
        "has one set"
    ),
}
ABSTRACT = {
    acquisition.AcquisitionFunction,
    acquisition.OneShotAcquisitionFunction,
    acquisition.MultiModelAcquisitionFunction,
    analytic.AnalyticAcquisitionFunction,
    bayesian_active_learning.FullyBayesianAcquisitionFunction,
    decoupled.DecoupledAcquisitionFunction,
    logei.LogImprovementMCAcquisitionFunction,
    mes.MaxValueBase,
    monte_carlo.MCAcquisitionFunction,
    monte_carlo.SampleReducingMCAcquisitionFunction,
    multioutput_acquisition.MultiOutputAcquisitionFunction,
    mo_base.MultiObjectiveAnalyticAcquisitionFunction,
    mo_base.MultiObjectiveMCAcquisitionFunction,
    mo_jes.LowerBoundMultiObjectiveEntropySearch,
    objective.MCAcquisitionObjective,
    objective.PosteriorTransform,
    risk_measures.RiskMeasureMCObjective,
    mo_objective.MCMultiOutputObjective,
    multi_output_risk_measures.MultiOutputRiskMeasureMCObjective,
}


def botorch_classes() -> set[type]:
    """All acquisition functions, objectives and posterior transforms that BoTorch defines."""
    modules = [package, *map(importlib.import_module, _module_names())]
    return {
        member
        for module in modules
        for member in vars(module).values()
        if inspect.isclass(member)
        and member.__module__ == module.__name__
        and issubclass(member, AcquisitionFunction | MCAcquisitionObjective | PosteriorTransform)
    }


def _module_names() -> Iterable[str]:
    return (module.name for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."))
