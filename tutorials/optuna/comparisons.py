"""A taster who compares: ties, an undrinkable drink, and a number that a meter shows for some."""

import os

from optuna_dashboard.preferential import create_study

from botorch_skewgp.optuna import SkewGPSampler, report_comparison, report_number, report_unusable

NUM_TASTINGS = 6 if os.environ.get("SMOKE_TEST") else 25


def liked(params: dict[str, float]) -> float:
    """Known to the taster alone: best at (0.3, 0.6)."""
    return -((params["sugar"] - 0.3) ** 2) - (params["lemon"] - 0.6) ** 2


study = create_study(n_generate=2, sampler=SkewGPSampler(seed=0))
for _ in range(NUM_TASTINGS):
    while study.should_generate():
        trial = study.ask()
        trial.suggest_float("sugar", 0, 1)
        if trial.suggest_float("lemon", 0, 1) > 0.9:
            report_unusable(study, trial)  # too sour to be compared with anything
        elif trial.number % 5 == 0:
            report_number(study, trial, liked(trial.params), direction="maximize")  # the meter is at hand
    losers = {worse.number for _, worse in study.preferences}
    left = [trial for trial in study.trials if trial.number not in losers and trial.state.name != "FAIL"]
    better, worse = sorted(left, key=lambda trial: -liked(trial.params))
    if liked(better.params) - liked(worse.params) < 1e-3:
        report_comparison(study, better, worse, tie=True)
        break  # good enough
    study.report_preference(better, worse)
print("best:", better.params)
