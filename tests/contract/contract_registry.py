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


def entries() -> list[Entry]:
    """All that can be built."""
    E = Entry
    obj = objective
    mor = multi_output_risk_measures
    rm = risk_measures
    found = [
        # analytic: mean and variance
        E(analytic.LogProbabilityOfImprovement, lambda c: analytic.LogProbabilityOfImprovement(c.model, c.best_f)),
        E(analytic.ProbabilityOfImprovement, lambda c: analytic.ProbabilityOfImprovement(c.model, c.best_f)),
        E(analytic.ExpectedImprovement, lambda c: analytic.ExpectedImprovement(c.model, c.best_f)),
        E(analytic.LogExpectedImprovement, lambda c: analytic.LogExpectedImprovement(c.model, c.best_f)),
        E(
            analytic.LogExpectedImprovement,
            lambda c: analytic.LogExpectedImprovement(
                c.objectives, 0.0, posterior_transform=obj.ScalarizedPosteriorTransform(tensor([0.5, 0.5]))
            ),
            variant="two outputs, scalarised",
        ),
        E(
            analytic.LogConstrainedExpectedImprovement,
            lambda c: analytic.LogConstrainedExpectedImprovement(c.objectives, c.best_f, 0, {1: (0.0, None)}),
        ),
        E(
            analytic.ConstrainedExpectedImprovement,
            lambda c: analytic.ConstrainedExpectedImprovement(c.objectives, c.best_f, 0, {1: (0.0, None)}),
        ),
        E(
            analytic.LogProbabilityOfFeasibility,
            lambda c: analytic.LogProbabilityOfFeasibility(c.objectives, {1: (0.0, None)}),
        ),
        E(analytic.UpperConfidenceBound, lambda c: analytic.UpperConfidenceBound(c.model, beta=2.0)),
        E(analytic.PosteriorMean, lambda c: analytic.PosteriorMean(c.model)),
        E(analytic.PosteriorStandardDeviation, lambda c: analytic.PosteriorStandardDeviation(c.model)),
    ]
    found = [Entry(**{**vars(e), "route": MOMENTS, "qs": ONE_POINT, "pending": None}) for e in found]
    found += [
        E(
            analytic.ScalarizedPosteriorMean,
            lambda c: analytic.ScalarizedPosteriorMean(c.model, weights=tensor([0.3, 0.7])),
            route=MOMENTS,
            qs=(2,),
            pending=None,
        ),
        E(
            preference.AnalyticExpectedUtilityOfBestOption,
            lambda c: preference.AnalyticExpectedUtilityOfBestOption(c.model),
            route=MOMENTS,
            qs=(2,),
            pending=None,
        ),
        E(
            preference.AnalyticExpectedUtilityOfBestOption,
            lambda c: preference.AnalyticExpectedUtilityOfBestOption(c.model, previous_winner=grid(1)),
            variant="previous winner",
            route=MOMENTS,
            qs=ONE_POINT,
            pending=None,
        ),
        E(
            preference.PairwiseBayesianActiveLearningByDisagreement,
            lambda c: preference.PairwiseBayesianActiveLearningByDisagreement(c.model, num_samples=64),
            route=MOMENTS,
            qs=(2,),
            pending=None,
            left_out={"gradient": _REDRAWN, "t-batch": _REDRAWN, "repeat": _REDRAWN, "optimise": _REDRAWN},
        ),
        E(
            mo_analytic.ExpectedHypervolumeImprovement,
            lambda c: mo_analytic.ExpectedHypervolumeImprovement(
                c.objectives, c.ref_point.tolist(), NondominatedPartitioning(c.ref_point, c.means)
            ),
            route=MOMENTS,
            qs=ONE_POINT,
            pending=None,
        ),
        E(
            multioutput_acquisition.MultiOutputPosteriorMean,
            lambda c: multioutput_acquisition.MultiOutputPosteriorMean(c.objectives),
            route=MOMENTS,
            qs=ONE_POINT,
            pending=None,
            outputs=2,
            left_out={"optimise": "several values at once: for multi-objective optimisers"},
        ),
        # Monte Carlo
        E(
            preference.qExpectedUtilityOfBestOption,
            lambda c: preference.qExpectedUtilityOfBestOption(c.model, sampler=sampler()),
        ),
        E(
            preference.qExpectedUtilityOfBestOption,
            lambda c: preference.qExpectedUtilityOfBestOption(c.model),
            variant="its own sampler",
            left_out={"pending": "the seed is drawn at the first evaluation", "optimise": _AS_ABOVE},
        ),
        E(
            monte_carlo.qExpectedImprovement,
            may_be_flat=True,
            build=lambda c: monte_carlo.qExpectedImprovement(c.model, c.best_f - 0.5, sampler=sampler()),
        ),
        E(
            monte_carlo.qExpectedImprovement,
            may_be_flat=True,
            build=lambda c: monte_carlo.qExpectedImprovement(
                c.objectives,
                c.best_f - 0.5,
                sampler=sampler_of_two(),
                objective=first_output(),
                constraints=[constraint],
            ),
            variant="an output as constraint",
        ),
        E(
            monte_carlo.qNoisyExpectedImprovement,
            may_be_flat=True,
            build=lambda c: monte_carlo.qNoisyExpectedImprovement(c.model, c.train_X, sampler=sampler()),
        ),
        E(
            monte_carlo.qProbabilityOfImprovement,
            lambda c: monte_carlo.qProbabilityOfImprovement(c.model, c.best_f, sampler=sampler(), tau=0.1),
        ),
        E(monte_carlo.qSimpleRegret, lambda c: monte_carlo.qSimpleRegret(c.model, sampler=sampler())),
        E(
            monte_carlo.qUpperConfidenceBound,
            lambda c: monte_carlo.qUpperConfidenceBound(c.model, beta=2.0, sampler=sampler()),
        ),
        E(
            monte_carlo.qLowerConfidenceBound,
            lambda c: monte_carlo.qLowerConfidenceBound(c.model, beta=2.0, sampler=sampler()),
        ),
        E(
            monte_carlo.qPosteriorStandardDeviation,
            lambda c: monte_carlo.qPosteriorStandardDeviation(c.model, sampler=sampler()),
        ),
        E(
            logei.qLogExpectedImprovement,
            lambda c: logei.qLogExpectedImprovement(c.model, c.best_f, sampler=sampler()),
        ),
        E(
            logei.qLogExpectedImprovement,
            lambda c: logei.qLogExpectedImprovement(
                c.objectives, c.best_f, sampler=sampler_of_two(), objective=first_output(), constraints=[constraint]
            ),
            variant="an output as constraint",
        ),
        E(
            logei.qLogNoisyExpectedImprovement,
            lambda c: logei.qLogNoisyExpectedImprovement(c.model, c.train_X, sampler=sampler()),
            pending="other",
        ),
        E(
            logei.qLogNoisyExpectedImprovement,
            lambda c: logei.qLogNoisyExpectedImprovement(
                c.objectives, c.train_X, sampler=sampler_of_two(), objective=first_output(), constraints=[constraint]
            ),
            variant="an output as constraint",
            pending="other",
        ),
        E(
            logei.qLogProbabilityOfFeasibility,
            lambda c: logei.qLogProbabilityOfFeasibility(c.objectives, [constraint], sampler=sampler_of_two()),
        ),
        E(
            active_learning.PairwiseMCPosteriorVariance,
            lambda c: active_learning.PairwiseMCPosteriorVariance(c.model, _first(), sampler=sampler()),
            qs=(2,),
            pending=None,
        ),
        E(
            thompson_sampling.PathwiseThompsonSampling,
            lambda c: thompson_sampling.PathwiseThompsonSampling(c.model),
            pending=None,
            left_out={"t-batch": "BoTorch reads the first evaluation's number of candidates as that of draws"},
        ),
        # look-ahead
        E(
            active_learning.qNegIntegratedPosteriorVariance,
            lambda c: active_learning.qNegIntegratedPosteriorVariance(c.model, grid(8)),
            fantasies=True,
        ),
        E(
            knowledge_gradient.qKnowledgeGradient,
            lambda c: knowledge_gradient.qKnowledgeGradient(c.model, None, sampler=sampler(NUM_FANTASIES)),
            fantasies=True,
        ),
        E(
            knowledge_gradient.qKnowledgeGradient,
            lambda c: knowledge_gradient.qKnowledgeGradient(
                c.model,
                None,
                sampler=sampler(NUM_FANTASIES),
                objective=obj.GenericMCObjective(lambda Y, X=None: Y[..., 0].tanh()),
                inner_sampler=sampler(8),
            ),
            variant="objective",
            fantasies=True,
            jumps=True,
            left_out={"optimise": _AS_ABOVE},
        ),
        E(
            knowledge_gradient.qMultiFidelityKnowledgeGradient,
            lambda c: knowledge_gradient.qMultiFidelityKnowledgeGradient(
                c.model,
                None,
                sampler=sampler(NUM_FANTASIES),
                current_value=tensor(-2.0),
                cost_aware_utility=cost(),
                project=project,
            ),
            fantasies=True,
            pending="other",
        ),
        E(
            knowledge_gradient.ProjectedAcquisitionFunction,
            lambda c: knowledge_gradient.ProjectedAcquisitionFunction(
                monte_carlo.qSimpleRegret(c.model, sampler=sampler()), project
            ),
            pending=None,
        ),
        E(
            multi_step_lookahead.qMultiStepLookahead,
            lambda c: multi_step_lookahead.qMultiStepLookahead(
                c.model, batch_sizes=[2 if c.fantasies_are_duels else 1, 1], samplers=[sampler(2), sampler(2)]
            ),
            fantasies=True,
            left_out_for_duels={"t-batch": T_BATCH_MIXED},
        ),
        # several objectives
        E(
            mo_mc.qExpectedHypervolumeImprovement,
            may_be_flat=True,
            build=lambda c: mo_mc.qExpectedHypervolumeImprovement(
                c.objectives, c.ref_point, partitioning(c), sampler=sampler_of_two()
            ),
        ),
        E(
            mo_mc.qNoisyExpectedHypervolumeImprovement,
            may_be_flat=True,
            build=lambda c: mo_mc.qNoisyExpectedHypervolumeImprovement(
                c.objectives, c.ref_point, c.train_X, sampler=sampler_of_two(8)
            ),
            pending="other",
        ),
        E(
            mo_mc.qNoisyExpectedHypervolumeImprovement,
            may_be_flat=True,
            build=lambda c: mo_mc.qNoisyExpectedHypervolumeImprovement(
                c.objectives, c.ref_point, c.train_X, sampler=sampler_of_two(8), constraints=[constraint]
            ),
            variant="an output as constraint",
            pending="other",
            left_out={"optimise": _AS_ABOVE},
        ),
        E(
            mo_logei.qLogExpectedHypervolumeImprovement,
            lambda c: mo_logei.qLogExpectedHypervolumeImprovement(
                c.objectives, c.ref_point, partitioning(c), sampler=sampler_of_two()
            ),
        ),
        E(
            mo_logei.qLogNoisyExpectedHypervolumeImprovement,
            lambda c: mo_logei.qLogNoisyExpectedHypervolumeImprovement(
                c.objectives, c.ref_point, c.train_X, sampler=sampler_of_two(8)
            ),
            pending="other",
        ),
        E(
            parego.qLogNParEGO,
            lambda c: parego.qLogNParEGO(
                c.objectives, c.train_X, scalarization_weights=tensor([0.4, 0.6]), sampler=sampler_of_two()
            ),
            pending="other",
        ),
        E(
            multi_fidelity.MOMF,
            may_be_flat=True,
            build=lambda c: multi_fidelity.MOMF(c.objectives, c.ref_point, partitioning(c), sampler=sampler_of_two()),
            pending="other",
        ),
        E(
            hvkg.qHypervolumeKnowledgeGradient,
            lambda c: hvkg.qHypervolumeKnowledgeGradient(c.objectives, c.ref_point, num_fantasies=2, num_pareto=2),
            fantasies=True,
            left_out={"t-batch": T_BATCH_MIXED},
        ),
        E(
            hvkg.qMultiFidelityHypervolumeKnowledgeGradient,
            lambda c: hvkg.qMultiFidelityHypervolumeKnowledgeGradient(
                c.objectives,
                c.ref_point,
                target_fidelities={DIM - 1: 1.0},
                num_fantasies=2,
                num_pareto=2,
                project=project,
            ),
            fantasies=True,
            left_out={"t-batch": T_BATCH_MIXED},
        ),
        # around other functions
        E(
            fixed_feature.FixedFeatureAcquisitionFunction,
            lambda c: fixed_feature.FixedFeatureAcquisitionFunction(
                monte_carlo.qSimpleRegret(c.model, sampler=sampler()), d=DIM, columns=[1], values=[0.4]
            ),
            dim=DIM - 1,
            pending=None,
        ),
        E(
            penalized.PenalizedAcquisitionFunction,
            lambda c: penalized.PenalizedAcquisitionFunction(
                monte_carlo.qSimpleRegret(c.model, sampler=sampler()), penalized.L2Penalty(tensor([[0.5, 0.5]])), 0.1
            ),
            pending="other",
        ),
        E(
            prior_guided.PriorGuidedAcquisitionFunction,
            lambda c: prior_guided.PriorGuidedAcquisitionFunction(
                monte_carlo.qSimpleRegret(c.model, sampler=sampler()), Prior()
            ),
        ),
        E(
            proximal.ProximalAcquisitionFunction,
            lambda c: proximal.ProximalAcquisitionFunction(
                analytic.ExpectedImprovement(c.model, c.best_f), proximal_weights=tensor([0.5, 0.5])
            ),
            qs=ONE_POINT,
            pending=None,
        ),
        E(
            multioutput_acquisition.MultiOutputAcquisitionFunctionWrapper,
            lambda c: multioutput_acquisition.MultiOutputAcquisitionFunctionWrapper(
                [
                    monte_carlo.qSimpleRegret(c.model, sampler=sampler()),
                    monte_carlo.qUpperConfidenceBound(c.model, 1.0, sampler=sampler()),
                ]
            ),
            pending=None,
            outputs=2,
            left_out={"optimise": "several values at once: for multi-objective optimisers"},
        ),
        # Gaussian by construction
        E(
            analytic.qAnalyticProbabilityOfImprovement,
            lambda c: analytic.qAnalyticProbabilityOfImprovement(c.gaussian, c.best_f),
            route=MATCHED,
            pending=None,
            gradient_batch=1,  # BoTorch's MVNXPB loses derivatives of a batch whose members are ordered differently
        ),
        E(
            mes.qMaxValueEntropy,
            lambda c: mes.qMaxValueEntropy(c.gaussian, grid(16), num_fantasies=4, num_y_samples=16),
            route=MATCHED,
            qs=ONE_POINT,
            pending="other",
            pending_seed=49,  # at that of the others a mean is so low that the value is at BoTorch's clamps
            left_out_for_duels={"sequential": ONE_PENDING},
        ),
        E(
            mes.qMultiFidelityMaxValueEntropy,
            lambda c: mes.qMultiFidelityMaxValueEntropy(
                c.gaussian, grid(16), num_fantasies=4, num_y_samples=16, cost_aware_utility=cost(), project=project
            ),
            route=MATCHED,
            qs=ONE_POINT,
            pending="other",
            left_out_for_duels={"sequential": ONE_PENDING},
        ),
        E(
            mes.qLowerBoundMaxValueEntropy,
            lambda c: mes.qLowerBoundMaxValueEntropy(c.gaussian, grid(16)),
            route=MATCHED,
            qs=ONE_POINT,
            pending="other",
        ),
        E(
            mes.qMultiFidelityLowerBoundMaxValueEntropy,
            lambda c: mes.qMultiFidelityLowerBoundMaxValueEntropy(
                c.gaussian, grid(16), num_fantasies=4, num_y_samples=16, cost_aware_utility=cost(), project=project
            ),
            route=MATCHED,
            qs=ONE_POINT,
            pending="other",
        ),
        *(
            E(
                joint_entropy_search.qJointEntropySearch,
                lambda c, kind=kind: joint_entropy_search.qJointEntropySearch(
                    c.gaussian, *optima(c), estimation_type=kind, num_samples=16
                ),
                variant=kind,
                route=MATCHED,
            )
            for kind in ("LB", "MC")
        ),
        E(
            predictive_entropy_search.qPredictiveEntropySearch,
            lambda c: predictive_entropy_search.qPredictiveEntropySearch(c.gaussian, optima(c)[0]),
            route=MATCHED,
            left_out={"gradient": PES_GRADIENT, "optimise": PES_GRADIENT},
        ),
        E(
            mo_pes.qMultiObjectivePredictiveEntropySearch,
            lambda c: mo_pes.qMultiObjectivePredictiveEntropySearch(c.gaussian_objectives, pareto(c)[0]),
            route=MATCHED,
            left_out={"gradient": PES_GRADIENT, "optimise": PES_GRADIENT},
        ),
        E(
            mo_mes.qLowerBoundMultiObjectiveMaxValueEntropySearch,
            lambda c: mo_mes.qLowerBoundMultiObjectiveMaxValueEntropySearch(c.gaussian_objectives, pareto(c)[2]),
            route=MATCHED,
        ),
        E(
            mo_jes.qLowerBoundMultiObjectiveJointEntropySearch,
            lambda c: mo_jes.qLowerBoundMultiObjectiveJointEntropySearch(c.gaussian_objectives, *pareto(c)),
            route=MATCHED,
        ),
        # objectives and posterior transforms
        E(obj.IdentityMCObjective, with_objective(obj.IdentityMCObjective)),
        E(
            obj.LinearMCObjective,
            lambda c: monte_carlo.qSimpleRegret(
                c.objectives, sampler=sampler_of_two(), objective=obj.LinearMCObjective(tensor([0.3, 0.7]))
            ),
        ),
        E(obj.GenericMCObjective, with_objective(lambda: obj.GenericMCObjective(lambda Y, X=None: Y[..., 0].tanh()))),
        E(
            obj.ConstrainedMCObjective,
            lambda c: monte_carlo.qSimpleRegret(
                c.objectives,
                sampler=sampler_of_two(),
                objective=obj.ConstrainedMCObjective(
                    lambda Y, X=None: Y[..., 0], [constraint], infeasible_cost=3.0, eta=0.1
                ),
            ),
        ),
        E(obj.LearnedObjective, learned_objective, qs=(1, 2)),
        E(
            penalized.PenalizedMCObjective,
            with_objective(lambda: penalized.PenalizedMCObjective(lambda Y, X=None: Y[..., 0], Distance(), 0.3)),
        ),
        E(
            obj.ScalarizedPosteriorTransform,
            lambda c: monte_carlo.qSimpleRegret(
                c.model, sampler=sampler(), posterior_transform=obj.ScalarizedPosteriorTransform(tensor([-2.0]), 1.0)
            ),
        ),
        E(
            obj.ExpectationPosteriorTransform,
            lambda c: monte_carlo.qSimpleRegret(
                c.perturbed,
                sampler=sampler(),
                posterior_transform=obj.ExpectationPosteriorTransform(NUM_PERTURBATIONS).double(),
            ),
        ),
        E(rm.Expectation, with_objective(lambda: rm.Expectation(NUM_PERTURBATIONS), True)),
        E(rm.WorstCase, with_objective(lambda: rm.WorstCase(NUM_PERTURBATIONS), True)),
        E(rm.CVaR, with_objective(lambda: rm.CVaR(0.5, NUM_PERTURBATIONS), True)),
        E(rm.VaR, with_objective(lambda: rm.VaR(0.5, NUM_PERTURBATIONS), True)),
        E(
            rm.CVaR,
            may_be_flat=True,
            build=lambda c: monte_carlo.qNoisyExpectedImprovement(
                c.perturbed, c.train_X, sampler=sampler(), objective=rm.CVaR(0.5, NUM_PERTURBATIONS)
            ),
            variant="qNoisyExpectedImprovement",
        ),
        E(
            mo_objective.IdentityMCMultiOutputObjective,
            with_objective(mo_objective.IdentityMCMultiOutputObjective, outputs=2),
        ),
        E(
            mo_objective.GenericMCMultiOutputObjective,
            with_objective(lambda: mo_objective.GenericMCMultiOutputObjective(lambda Y, X=None: 1.5 * Y), outputs=2),
        ),
        E(
            mo_objective.WeightedMCMultiOutputObjective,
            with_objective(lambda: mo_objective.WeightedMCMultiOutputObjective(tensor([1.0, 0.5])), outputs=2),
        ),
        E(
            mo_objective.FeasibilityWeightedMCMultiOutputObjective,
            feasibility_weighted,
            may_be_flat=True,
        ),
        E(
            mor.MultiOutputExpectation,
            with_objective(lambda: mor.MultiOutputExpectation(NUM_PERTURBATIONS), True, outputs=2),
        ),
        E(mor.IndependentCVaR, with_objective(lambda: mor.IndependentCVaR(0.5, NUM_PERTURBATIONS), True, outputs=2)),
        E(mor.IndependentVaR, with_objective(lambda: mor.IndependentVaR(0.5, NUM_PERTURBATIONS), True, outputs=2)),
        E(
            mor.MultiOutputWorstCase,
            with_objective(lambda: mor.MultiOutputWorstCase(NUM_PERTURBATIONS), True, outputs=2),
        ),
        E(
            mor.MVaR,
            with_objective(lambda: mor.MVaR(NUM_PERTURBATIONS, 0.5, expectation=True), True, outputs=2),
            left_out={
                "gradient": "BoTorch's gradients of MVaR are approximate on purpose",
                "optimise": "BoTorch enumerates all subsets of a set that can get large",
            },
        ),
        E(mor.MARS, mars),
    ]
    return found


_REDRAWN = "BoTorch's function draws new samples at every evaluation"
_AS_ABOVE = "checked in another row of this function"


def _first() -> objective.MCAcquisitionObjective:
    return objective.GenericMCObjective(lambda Y, X=None: Y[..., 0])


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
