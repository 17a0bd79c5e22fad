"""Acquisition functions that BoTorch does not have, and functions that choose questions and recommendations.

`components` holds the normal components of a posterior, `analytic` and `noisy_improvement` closed forms on them.
`dueling` and `challenge` are challengers of a point; `questions`, `active_learning` and `knowledge_gradient` look ahead
to the outcomes of one observation. `validity` and `constraints` are about validity and safety, `level_sets` about where
the probability of a yes is above a level, `committee` about the votes of several judges. `recommendation` chooses the
next pair and the point to recommend; `next_question` chooses among kinds of questions, points and people by the value
of an answer for its price, with the look-ahead in `question_values`. `input_constructors` registers acquisition
functions with BoTorch, and so with Ax.
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
