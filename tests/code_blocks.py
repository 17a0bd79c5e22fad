"""Code in texts: blocks of Markdown pages, and the examples of docstrings with the names that they use."""

from __future__ import annotations

import doctest
import functools
import importlib
import inspect
import pkgutil
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from botorch import fit_gpytorch_mll
from botorch.acquisition import GenericMCObjective, qLogExpectedImprovement
from botorch.acquisition.max_value_entropy_search import qMaxValueEntropy
from botorch.models import ModelList
from botorch.optim import optimize_acqf
from botorch.optim.fit import fit_gpytorch_mll_torch

import botorch_skewgp
from botorch_skewgp import SkewGP
from botorch_skewgp.observations import Numeric, Preference
from botorch_skewgp.transformed import BayesianTransformedGP
from botorch_skewgp.truncated.samplers.feasibility import feasible_start
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

ROOT = Path(__file__).parents[1]
# compiled code behind the samplers, which cannot be imported without its compilers
INTERNAL = "botorch_skewgp.truncated.samplers.trajectories"


def markdown_blocks(page: Path) -> list[str]:
    """The Python blocks of a Markdown page, in order."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def run(code: str, name: str, namespace: dict[str, Any]) -> None:
    """Run code from a text."""
    exec(compile(code, name, "exec", dont_inherit=True), namespace)  # the text has no future imports


def public_modules() -> Iterator[ModuleType]:
    """All modules of the package that can be imported with the extras that are installed."""
    for entry in pkgutil.walk_packages(botorch_skewgp.__path__, "botorch_skewgp."):
        if not entry.name.startswith(INTERNAL):
            try:
                with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # of what extras import
                    module = importlib.import_module(entry.name)
            except ModuleNotFoundError as error:  # of an extra
                if str(error.name).startswith("botorch_skewgp"):
                    raise
            else:
                yield module


def docstring_examples() -> dict[str, str]:
    """The code after `>>>` in the docstrings of public modules, by the name of what they describe."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    return {
        test.name: "".join(example.source for example in test.examples)
        for module in public_modules()
        for test in finder.find(module, module.__name__)
        if test.examples
    }


def ax_client() -> Any:
    """An Ax client with five trials that have no data yet."""
    from ax.api.client import Client
    from ax.api.configs import RangeParameterConfig

    client = Client(random_seed=0)
    client.configure_experiment([RangeParameterConfig(name="x", parameter_type="float", bounds=(0.0, 1.0))])
    client.configure_tracking_metrics(["seconds", "residue"])
    for x in (0.1, 0.3, 0.5, 0.7, 0.9):
        client.attach_trial(parameters={"x": x})
    return client


def optuna_study() -> Any:
    """An Optuna study of five trials that are running, two of which were compared, one of these with a number."""
    import optuna

    from botorch_skewgp.optuna import SkewGPSampler, report_comparison, report_number

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=SkewGPSampler(seed=0))
    for _ in range(5):
        study.ask().suggest_float("x", 0, 1)
    report_comparison(study, 3, 1)
    report_number(study, 3, 0.5, "maximize")
    return study


def docstring_names() -> dict[str, Any]:
    """What an example may use without making it: the package's public names, a few of BoTorch's, and data.

    The data are sixteen points of the unit square with a value, a label, a flag whether the experiment worked, and four
    duels; a model of the duels, one of the values, an acquisition function; and a truncated normal with feasible rows
    for its samplers. Examples of the Ax backend also have a `client`, see `ax_client`, and
    those of the Optuna backend a `study` and `optuna` itself, see `optuna_study`.
    """
    names: dict[str, Any] = {
        name: entry
        for module in public_modules()
        for name, entry in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(entry) or inspect.isfunction(entry))
        and entry.__module__.startswith("botorch_skewgp")
    }
    for entry in (GenericMCObjective, ModelList, fit_gpytorch_mll, qLogExpectedImprovement, qMaxValueEntropy):
        names[entry.__name__] = entry
    generator = torch.Generator().manual_seed(0)
    train_X = torch.rand(16, 2, dtype=torch.double, generator=generator)
    values = torch.sin(6 * train_X).sum(-1)
    pairs = torch.tensor([[0, 1], [2, 3], [4, 5], [6, 7]])
    objective = SkewGP(train_X, Numeric(values))
    rows = torch.zeros(3, dtype=torch.double)
    distribution = TruncatedNormal(rows, torch.eye(3).to(rows), rows, rows + torch.inf, rows + 1)
    start = feasible_start(distribution, num_chains=16, generator=generator)
    return names | {
        "torch": torch,
        "optimize_acqf": functools.partial(optimize_acqf, options={"maxiter": 20}),
        "fit_gpytorch_mll_torch": functools.partial(fit_gpytorch_mll_torch, step_limit=3),
        "generator": generator,
        "train_X": train_X,
        "X": train_X,
        "pool": train_X,
        "bounds": torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double),
        "values": values,
        "labels": values > 0,
        "worked": values > -1,
        "pairs": pairs,
        "model": SkewGP(train_X, Preference(pairs)),
        "objective": objective,
        "transformed": BayesianTransformedGP(train_X, values.exp().unsqueeze(-1), num_nodes=16, least_effective=0),
        "acq": names["SkewLogExpectedImprovement"](objective, best_f=values.max()),
        "distribution": distribution,
        "mean": distribution.mean,
        "covariance": torch.eye(3).to(rows),
        "lower": distribution.lower,
        "upper": distribution.upper,
        "noise": distribution.noise,
        "start": start,
    }
