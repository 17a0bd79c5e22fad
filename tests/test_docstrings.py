"""The examples of all public docstrings run, given the names of `names_for`; errors are named."""

from __future__ import annotations

import ast
import doctest
import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from botorch import fit_gpytorch_mll
from botorch.acquisition import GenericMCObjective, qLogExpectedImprovement
from botorch.acquisition.max_value_entropy_search import qMaxValueEntropy
from botorch.models import ModelList
from botorch.optim import optimize_acqf
from botorch.optim.fit import fit_gpytorch_mll_torch
from code_blocks import ROOT, parsed_package, public_modules, run

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import SkewLogExpectedImprovement
from botorch_skewgp.observations import Numeric, Preference
from botorch_skewgp.transformed import BayesianTransformedGP
from botorch_skewgp.truncated.samplers.feasibility import feasible_start
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal


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


@functools.cache
def public_names() -> dict[str, Any]:
    """The public names of the package, and a few of BoTorch's."""
    botorchs = (GenericMCObjective, ModelList, fit_gpytorch_mll, qLogExpectedImprovement, qMaxValueEntropy)
    ours = {
        name: entry
        for module in public_modules()
        for name, entry in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(entry) or inspect.isfunction(entry))
        and entry.__module__.startswith("botorch_skewgp")
    }
    return ours | {entry.__name__: entry for entry in botorchs}


def names_for(code: str) -> dict[str, Any]:
    """What an example may use without making it; of models and the like those that it names.

    The data are sixteen points of the unit square with a value, a label, a flag whether the experiment worked, and four
    duels; a model of the duels, one of the values, an acquisition function; and a truncated normal with feasible rows
    for its samplers. Examples of the Ax backend also have a `client`, see `ax_client`, and
    those of the Optuna backend a `study` and `optuna` itself, see `optuna_study`.
    """
    generator = torch.Generator().manual_seed(0)
    train_X = torch.rand(16, 2, dtype=torch.double, generator=generator)
    values = torch.sin(6 * train_X).sum(-1)
    pairs = torch.tensor([[0, 1], [2, 3], [4, 5], [6, 7]])
    rows, eye = torch.zeros(3, dtype=torch.double), torch.eye(3, dtype=torch.double)
    distribution = TruncatedNormal(rows, eye, rows, rows + torch.inf, rows + 1)
    made: dict[str, Callable[[], Any]] = {
        "model": lambda: SkewGP(train_X, Preference(pairs)),
        "objective": lambda: SkewGP(train_X, Numeric(values)),
        "transformed": lambda: BayesianTransformedGP(
            train_X, values.exp().unsqueeze(-1), num_nodes=16, least_effective=0
        ),
        "acq": lambda: SkewLogExpectedImprovement(SkewGP(train_X, Numeric(values)), best_f=values.max()),
        "start": lambda: feasible_start(distribution, num_chains=16, generator=generator),
        "client": ax_client,
        "study": optuna_study,
        "optuna": lambda: pytest.importorskip("optuna"),
    }
    return {
        **public_names(),
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
        "distribution": distribution,
        "mean": distribution.mean,
        "covariance": eye,
        "lower": distribution.lower,
        "upper": distribution.upper,
        "noise": distribution.noise,
        **{name: make() for name, make in made.items() if re.search(rf"\b{name}\b", code)},
    }


EXAMPLES = docstring_examples()


def test_examples_are_found():
    assert {"botorch_skewgp.models.skew_gp.SkewGP", "botorch_skewgp.observations.duels.Preference"} <= EXAMPLES.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.filterwarnings(
    "ignore::botorch.exceptions.OptimizationWarning",  # twenty steps are no convergence
    "ignore::botorch_skewgp.exceptions.FewAnswersWarning",  # few answers are quick
    "ignore:A not p.d., added jitter:linear_operator.utils.warnings.NumericalWarning",  # both points of a pair coincide
    r"ignore::DeprecationWarning:(botorch_skewgp\.)?ax\..*",  # Ax renames much, and says so to its callers
)
def test_example_runs(name):
    names = names_for(EXAMPLES[name])
    home, _, own = name.rpartition(".")
    if home in sys.modules:
        names[own] = getattr(sys.modules[home], own)  # other rooms may use the same name
    run(EXAMPLES[name], f"example of {name}", names)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")  # it warns of more than twenty figures


def _exported(tree: ast.Module) -> set[str]:
    """The names in `__all__`, which users import."""
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    lists = [node.value for node in assigned if ast.unparse(node.targets[0]) == "__all__"]
    return {name for names in lists for name in ast.literal_eval(names)}


def unnamed_errors(tree: ast.Module, exported: set[str]) -> list[str]:
    """Functions that users import and raise errors of which neither their docstring nor their class's says so."""
    return [
        f"{name} raises {error}"
        for name, function, docstring in _public_functions(tree)
        for error in sorted(_raised(function))
        if error not in docstring and name.partition(".")[0] in exported
    ]


def _public_functions(node: ast.AST, prefix: str = "", outer: str = "") -> Iterator[tuple[str, ast.FunctionDef, str]]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.ClassDef):
            continue
        is_constructor = child.name in {"__init__", "__post_init__"}
        if child.name.startswith("_") and not is_constructor:
            continue
        docstring = ast.get_docstring(child) or ""
        if isinstance(child, ast.FunctionDef):
            yield prefix + child.name, child, docstring + (outer if is_constructor else "")
        else:
            yield from _public_functions(child, f"{prefix}{child.name}.", docstring)


def _raised(function: ast.FunctionDef) -> set[str]:
    """The classes of errors in the function's own `raise` statements."""
    raised = [entry.exc for entry in ast.walk(function) if isinstance(entry, ast.Raise)]
    classes = [entry.func for entry in raised if isinstance(entry, ast.Call)]
    return {entry.id for entry in classes if isinstance(entry, ast.Name)} - {"NotImplementedError"}


def test_errors_are_named():
    files = parsed_package()
    exported = set().union(*(_exported(tree) for path, tree in files.items() if path.name == "__init__.py"))
    assert [fault for tree in files.values() for fault in unnamed_errors(tree, exported)] == []


def test_an_error_that_is_not_named_is_seen():
    source = 'class A:\n    """A."""\n    def f(self):\n        """F."""\n        raise ValueError("no")\n'
    named = source.replace("F.", "F.\n\n    Raises:\n        ValueError: Always.\n    ")
    assert unnamed_errors(ast.parse(source), {"A"}) == ["A.f raises ValueError"]
    assert unnamed_errors(ast.parse(source), {"B"}) == []
    assert unnamed_errors(ast.parse(named), {"A"}) == []


def test_every_file_has_a_sentence():
    """In the docstring of its folder; those of two folders on the page of the architecture."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    for path, tree in parsed_package().items():
        if path.name == "__init__.py":
            told = ast.get_docstring(tree) or ""
            told += page if path.parent.name in ("botorch_skewgp", "truncated") else ""
            names = {other.stem for other in path.parent.glob("*.py")} - {"__init__"}
            assert {name for name in names if not re.search(rf"`{name}[`.]", told)} == set(), path
