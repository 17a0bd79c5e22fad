"""Acquisition functions that BoTorch does not have, and functions that choose questions and recommendations.

`components` holds the normal components of a posterior, `analytic` and `noisy_improvement` closed forms on them, and
`best_probabilities` the probability of each point to be the best. `dueling` and `challenge` are challengers of a point;
`questions`, `active_learning` (with the `interpolation` of its integrals) and `knowledge_gradient` look ahead to the
outcomes of one observation. `validity` and `constraints` are about validity and safety, `level_sets` (with the
`bivariate` normal cdf) about where the probability of a yes is above a level, `committee` about the votes of several
judges.

`recommendation` chooses the next pair and the point to recommend, and `comparison_groups` warns where comparisons leave
that open. `search_domain` and `search_coordinates` say where they search. `next_question` chooses among kinds of
questions, points and people by the value of an answer for its price, with points from `question_points` and the
look-ahead in `question_values`; `cutpoint_variances` says how well cut-points are known there. `reference_point` is the
default one of hypervolumes, and `input_constructors` registers acquisition functions with BoTorch, and so with Ax.
"""

from botorch_skewgp.acquisition import input_constructors
from botorch_skewgp.acquisition.active_learning import SkewBayesianActiveLearningByDisagreement, select_from_pool
from botorch_skewgp.acquisition.analytic import (
    QuantileBound,
    SkewExpectedImprovement,
    SkewLogExpectedImprovement,
    SkewLogProbabilityOfImprovement,
    SkewProbabilityOfImprovement,
)
from botorch_skewgp.acquisition.best_probabilities import probability_of_best
from botorch_skewgp.acquisition.challenge import (
    DuelingLogExpectedImprovement,
    DuelingUpperConfidenceBound,
    HallucinatedLogExpectedImprovement,
    HallucinatedUpperConfidenceBound,
    MaximallyUncertainChallenge,
)
from botorch_skewgp.acquisition.committee import probability_of_majority
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
from botorch_skewgp.acquisition.level_sets import (
    LevelSetInformation,
    LevelSetMisclassification,
    LevelSetMisclassificationReduction,
)
from botorch_skewgp.acquisition.next_question import NextQuestion, Question, next_question, next_questions
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
    "LevelSetInformation",
    "LevelSetMisclassification",
    "LevelSetMisclassificationReduction",
    "LogProbabilityOfValidity",
    "MaximallyUncertainChallenge",
    "NextQuestion",
    "OneShotDuelingKnowledgeGradient",
    "PenalizedUpperConfidenceBound",
    "QuantileBound",
    "Question",
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
    "input_constructors",
    "next_choice",
    "next_pair",
    "next_question",
    "next_questions",
    "probability_of_best",
    "probability_of_majority",
    "recommend",
    "select_from_pool",
]
