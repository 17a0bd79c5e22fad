"""Acquisition functions that BoTorch does not have, and the questions of preferential optimisation as functions.

`components` is what closed forms on the mixture ask of a posterior, `analytic` and `noisy_improvement` hold them,
`dueling`, `challenge` and `knowledge_gradient` what is asked of duels, `validity` and `constraints` validity and
safety, `active_learning` information and choices from a pool, and
`recommendation` which pair to ask about next and which point to recommend now.
"""

from botorch_skewgp.acquisition.active_learning import SkewBayesianActiveLearningByDisagreement, select_from_pool
from botorch_skewgp.acquisition.analytic import (
    QuantileBound,
    SkewExpectedImprovement,
    SkewLogExpectedImprovement,
    SkewLogProbabilityOfImprovement,
    SkewProbabilityOfImprovement,
)
from botorch_skewgp.acquisition.challenge import (
    DuelingLogExpectedImprovement,
    DuelingUpperConfidenceBound,
    HallucinatedLogExpectedImprovement,
    HallucinatedUpperConfidenceBound,
    MaximallyUncertainChallenge,
)
from botorch_skewgp.acquisition.constraints import (
    PenalizedUpperConfidenceBound,
    ValidityConstraint,
    ValidityInequality,
    ValidityInitialConditions,
    ValidityWeightedAcquisitionFunction,
    gen_valid_candidates,
)
from botorch_skewgp.acquisition.dueling import (
    DuelingThompsonSampling,
    DuelingUpperCredibleBound,
    ExpectedImprovementInformationGain,
)
from botorch_skewgp.acquisition.knowledge_gradient import (
    DuelingKnowledgeGradient,
    OneShotDuelingKnowledgeGradient,
    SkewKnowledgeGradient,
)
from botorch_skewgp.acquisition.noisy_improvement import SkewLogNoisyExpectedImprovement
from botorch_skewgp.acquisition.recommendation import next_choice, next_pair, recommend
from botorch_skewgp.acquisition.validity import LogProbabilityOfValidity

__all__ = [
    "DuelingKnowledgeGradient",
    "DuelingLogExpectedImprovement",
    "DuelingThompsonSampling",
    "DuelingUpperConfidenceBound",
    "DuelingUpperCredibleBound",
    "ExpectedImprovementInformationGain",
    "HallucinatedLogExpectedImprovement",
    "HallucinatedUpperConfidenceBound",
    "LogProbabilityOfValidity",
    "MaximallyUncertainChallenge",
    "OneShotDuelingKnowledgeGradient",
    "PenalizedUpperConfidenceBound",
    "QuantileBound",
    "SkewBayesianActiveLearningByDisagreement",
    "SkewExpectedImprovement",
    "SkewKnowledgeGradient",
    "SkewLogExpectedImprovement",
    "SkewLogNoisyExpectedImprovement",
    "SkewLogProbabilityOfImprovement",
    "SkewProbabilityOfImprovement",
    "ValidityConstraint",
    "ValidityInequality",
    "ValidityInitialConditions",
    "ValidityWeightedAcquisitionFunction",
    "gen_valid_candidates",
    "next_choice",
    "next_pair",
    "recommend",
    "select_from_pool",
]
