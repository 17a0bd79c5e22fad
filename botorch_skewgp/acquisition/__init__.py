"""Acquisition functions that BoTorch does not have, and functions that choose questions and recommendations.

- pairs and choices: `next_pair`, of what `dueling` says; recommendations: `recommendation`, `comparison_groups`; both
  maximise `closed_forms` where they can, ask a model for its `model_points`, and search a `search_domain` by the
  `mixed_search` of all hosts and by `climbing` from all starts at once, with `search_options` of BoTorch's and the
  `rounding` of the model;
- the next question, by its price: `next_question`, `question_points`, `cutpoint_variances`;
- what an answer tells: the `look_ahead` of all questions, the `information` of an answer by `bivariate_normal`
  probabilities, and `active_learning`, which maximises it;
- improvement in closed form and quantiles: `analytic`, of the normal `components` of a posterior;
- what fails: `validity` and, as a soft constraint, `constraints`; what is safe enough to be tried: `safety`.

`reference_point` is the default one of hypervolumes, and `input_constructors` registers acquisition functions with
BoTorch, and so with Ax.
"""

from botorch_skewgp.acquisition import input_constructors
from botorch_skewgp.acquisition.active_learning import (
    LevelSetInformation,
    PredictiveInformation,
    SkewBayesianActiveLearningByDisagreement,
    select_from_pool,
)
from botorch_skewgp.acquisition.analytic import (
    QuantileBound,
    SkewLogExpectedImprovement,
    SkewLogNoisyExpectedImprovement,
    SkewLogProbabilityOfImprovement,
)
from botorch_skewgp.acquisition.constraints import (
    ValidityConstraint,
    ValidityWeightedAcquisitionFunction,
)
from botorch_skewgp.acquisition.dueling import DuelingLogExpectedImprovement, qExpectedUtilityAfterAnswers
from botorch_skewgp.acquisition.next_pair import next_choice, next_pair
from botorch_skewgp.acquisition.next_question import NextQuestion, Question, next_question
from botorch_skewgp.acquisition.recommendation import copeland_scores, probability_of_best, recommend
from botorch_skewgp.acquisition.safety import LogProbabilityOfSafety, SafetyInequality, next_safe, probability_of_safety
from botorch_skewgp.acquisition.validity import LogProbabilityOfValidity

__all__ = [
    "DuelingLogExpectedImprovement",
    "LevelSetInformation",
    "LogProbabilityOfSafety",
    "LogProbabilityOfValidity",
    "NextQuestion",
    "PredictiveInformation",
    "QuantileBound",
    "Question",
    "SafetyInequality",
    "SkewBayesianActiveLearningByDisagreement",
    "SkewLogExpectedImprovement",
    "SkewLogNoisyExpectedImprovement",
    "SkewLogProbabilityOfImprovement",
    "ValidityConstraint",
    "ValidityWeightedAcquisitionFunction",
    "copeland_scores",
    "input_constructors",
    "next_choice",
    "next_pair",
    "next_question",
    "next_safe",
    "probability_of_best",
    "probability_of_safety",
    "qExpectedUtilityAfterAnswers",
    "recommend",
    "select_from_pool",
]
