"""Acquisition functions that BoTorch does not have, and functions that choose questions and recommendations.

- the next pair or choice: `next_pair`, `next_choice` (`recommendation`, `search_domain`);
- the point to recommend: `recommend` (`recommendation`, `comparison_groups`);
- the next question, by its price: `next_question` (`next_question`, `question_points`, `outlook`);
- a challenger of a point, several pairs: `DuelingLogExpectedImprovement` (`dueling`);
- improvement in closed form, quantiles: `SkewLogExpectedImprovement`, ... (`analytic`);
- information of an answer about the function: `SkewBayesianActiveLearningByDisagreement` (`active_learning`);
- where a probability crosses a level, other predictions: `LevelSetInformation`, ... (`information_at_points`);
- what fails, safety: `ValidityConstraint`, `next_safe`, ... (`constraints`, `validity`);
- the probability of each point to be the best: `probability_of_best` (`recommendation`).

`components` holds the normal components of a posterior, `questions` what look-aheads to one observation share,
`answer_entropy` and `bivariate` their integrals, `cutpoint_variances` how well cut-points are known. Searches take
steps in `search_coordinates`, and `mixed_search` is that of inputs with lists of values and of all hosts.
`reference_point` is the default one of hypervolumes, and `input_constructors` registers acquisition functions with
BoTorch, and so with Ax.
"""

from botorch_skewgp.acquisition import input_constructors
from botorch_skewgp.acquisition.active_learning import SkewBayesianActiveLearningByDisagreement, select_from_pool
from botorch_skewgp.acquisition.analytic import (
    QuantileBound,
    SkewLogExpectedImprovement,
    SkewLogNoisyExpectedImprovement,
    SkewLogProbabilityOfImprovement,
)
from botorch_skewgp.acquisition.constraints import (
    ValidityConstraint,
    ValidityInequality,
    ValidityWeightedAcquisitionFunction,
    next_safe,
)
from botorch_skewgp.acquisition.dueling import DuelingLogExpectedImprovement, qExpectedUtilityAfterDuels
from botorch_skewgp.acquisition.information_at_points import LevelSetInformation, PredictiveInformation
from botorch_skewgp.acquisition.next_question import NextQuestion, Question, next_question
from botorch_skewgp.acquisition.recommendation import next_choice, next_pair, probability_of_best, recommend
from botorch_skewgp.acquisition.validity import LogProbabilityOfValidity

__all__ = [
    "DuelingLogExpectedImprovement",
    "LevelSetInformation",
    "LogProbabilityOfValidity",
    "NextQuestion",
    "PredictiveInformation",
    "QuantileBound",
    "Question",
    "SkewBayesianActiveLearningByDisagreement",
    "SkewLogExpectedImprovement",
    "SkewLogNoisyExpectedImprovement",
    "SkewLogProbabilityOfImprovement",
    "ValidityConstraint",
    "ValidityInequality",
    "ValidityWeightedAcquisitionFunction",
    "input_constructors",
    "next_choice",
    "next_pair",
    "next_question",
    "next_safe",
    "probability_of_best",
    "qExpectedUtilityAfterDuels",
    "recommend",
    "select_from_pool",
]
