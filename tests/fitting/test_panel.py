"""One call for simulated panels: the parts that made the answers are kept, others are not, and predictions gain."""

import pickle
import warnings

import pytest
import torch
from botorch.exceptions.errors import InputDataError, ModelFittingError, UnsupportedError
from botorch.exceptions.warnings import InputDataWarning
from gpytorch.kernels import AdditiveKernel

from botorch_skewgp.fitting import fit_panel, panel
from botorch_skewgp.kernels.judges import LinearTastesKernel
from botorch_skewgp.observations import Binary, Choice, Numeric, Ordinal, Preference

double = torch.double


def chosen_of(utility, generator):
    """The options of each question with the chosen one first, `m x k` numbers from 0."""
    noise = torch.randn(utility.shape, dtype=double, generator=generator)
    return (utility + noise).argsort(-1, descending=True)


def panel_of_choices(people=8, each=12, k=3, spread=2.0, bump=0.0, seed=0):
    """Choices by people with linear tastes around common ones, and perhaps a bump that all like; points in units."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(people * each, k, 2, dtype=double, generator=generator)
    person = torch.arange(people).repeat_interleave(each)
    tastes = torch.tensor([3.0, -1.0]).double() + spread * torch.randn(people, 2, dtype=double, generator=generator)
    utility = (X * tastes[person].unsqueeze(1)).sum(-1)
    utility = utility + bump * (-8 * (X - 0.5).square().sum(-1)).exp()
    order = chosen_of(utility, generator)
    options = torch.arange(people * each * k).view(-1, k).gather(-1, order)
    return X, options, person, utility


def kinds_of(model):
    """The classes of the shared and of the own parts."""
    shared = [type(part).__name__ for part in getattr(model.covar_module, "kernels", [model.covar_module])]
    own = model.judge_covar_module
    return shared, [type(part).__name__ for part in getattr(own, "kernels", [own])]


def test_choices_of_people_who_differ():
    X, options, person, utility = panel_of_choices()
    low, width = torch.tensor([100.0, -3.0]).double(), torch.tensor([50.0, 0.01]).double()
    learnt = torch.arange(len(person)) % 4 > 0
    observations = Choice(options[learnt], judge=person[learnt])
    model = fit_panel((low + width * X).flatten(0, 1), observations)
    assert kinds_of(model) == (["LinearKernel"], ["LinearTastesKernel"])
    assert len(model.inducing_points) == 3
    asked = (~learnt).nonzero().squeeze(-1)
    said = torch.stack([model.predictive(low + width * X[i], judge=int(person[i])).probs for i in asked.tolist()])
    shared = torch.stack([model.predictive(low + width * X[i]).probs for i in asked.tolist()])
    best = utility[asked].argmax(-1, keepdim=True)
    assert said.gather(-1, best).log().mean() > shared.gather(-1, best).log().mean() + 0.03


@pytest.mark.slow
def test_a_smooth_part_stays_where_utilities_have_a_bump():
    X, options, person, _ = panel_of_choices(people=8, each=24, k=2, spread=0.5, bump=6.0)
    model = fit_panel(X.flatten(0, 1), Preference(options, judge=person), num_inducing=20)
    shared, own = kinds_of(model)
    assert shared == ["LinearKernel", "ScaleKernel"]
    assert own == ["LinearTastesKernel"]
    assert 20 < len(model.inducing_points) <= 23


@pytest.mark.slow
def test_slips_are_learned_where_people_slip():
    X, options, person, _ = panel_of_choices(people=10, each=40, k=2, spread=10.0)
    generator = torch.Generator().manual_seed(3)
    at_random = torch.rand(len(options), generator=generator) < 0.15
    turned = at_random & (torch.rand(len(options), generator=generator) < 0.5)
    options = torch.where(turned.unsqueeze(-1), options.flip(-1), options)
    model = fit_panel(X.flatten(0, 1), Preference(options, judge=person))
    assert 0.05 < model.likelihood.slip.item() < 0.3


def answered(num_items=8, people=50, directions=2, seed=0):
    """A questionnaire whose items load on independent abilities, in three grades."""
    generator = torch.Generator().manual_seed(seed)
    loads = torch.nn.functional.one_hot(torch.arange(num_items) % directions, directions).double() * 2
    ability = torch.randn(people, directions, dtype=double, generator=generator)
    level = ability @ loads.mT + torch.linspace(-0.5, 0.5, num_items).double()
    noisy = level + torch.randn(level.shape, dtype=double, generator=generator)
    grade = (noisy.unsqueeze(-1) > torch.tensor([-1.0, 1.0])).sum(-1)
    return Ordinal(
        grade.flatten(), 3, index=torch.arange(num_items).repeat(people),
        judge=torch.arange(people).repeat_interleave(num_items),
    )  # fmt: skip


@pytest.mark.slow
def test_abilities_of_a_questionnaire_are_counted():
    items = torch.arange(8, dtype=double).unsqueeze(-1)
    model = fit_panel(items, answered(), categories=[0])
    tastes = model.judge_covar_module
    assert isinstance(tastes, LinearTastesKernel)
    assert tastes.root.shape == (9, 2)
    loadings = tastes.root[:1] + tastes.root[1:]
    correlation = torch.corrcoef(loadings @ torch.randn(2, 4000, dtype=double))
    alike = torch.arange(8) % 2 == (torch.arange(8) % 2).unsqueeze(-1)
    assert correlation[alike].min() > 0.5 > correlation[~alike].abs().max()


def test_columns_of_numbers_and_of_categories():
    """Numbers are scaled where they stand among categories; few points tell a linear function."""
    X = torch.tensor([[2.0, 5.0, 1.0, -1.0, 7.0], [0.0, 6.0, 0.0, 3.0, 7.0]]).double()
    columns = panel._Columns(X, [0, 2])
    found = columns.transform()(X)
    assert found.shape[-1] == columns.num == 8
    assert found[:, columns.of_numbers].tolist() == [[0.0, 0.0, 0.0], [1.0, 1.0, 0.0]]
    spanning = columns.transform()(columns.spanning())
    assert int(torch.linalg.matrix_rank(torch.cat([torch.ones(len(spanning), 1), spanning], dim=-1))) == 7


@pytest.mark.parametrize("compares", [False, True])
def test_loadings_are_shrunk_and_tastes_of_comparisons_are_not(compares):
    """With more columns than tastes have a full covariance for, comparisons too have directions."""
    X = torch.arange(12, dtype=double).unsqueeze(-1)
    observations = [Preference([[0, 1], [2, 3]], judge=[0, 1]) if compares else Ordinal([0, 1, 2], 3, judge=[0, 1, 0])]
    data = panel._Panel(X, observations, panel._Columns(X, [0]), 2, 5)
    ((grown, num_added, *_),) = data.directions(1, data.first())
    tastes = grown.judge_covar_module
    rank = 2 if compares else 1
    assert tastes.root.shape == (13, rank)
    assert num_added == 12
    assert float(tastes.root_prior.scale) == pytest.approx(10.0 if compares else 0.3)


@pytest.mark.parametrize("level", [False, True])
def test_the_prior_of_tastes_is_of_what_answers_tell(level):
    """A power of the determinant of the covariance of effects that differ between alternatives, whatever else is."""
    X = torch.tensor([[0.0, 5.0, 0.0], [1.0, 9.0, 1.0], [2.0, 7.0, 1.0], [1.0, 6.0, 0.0]], dtype=double)
    columns = panel._Columns(X, [0, 2])  # three columns, a number, two columns
    told = columns.told(level)
    # from the first level of both categories: what a point is worth there, if it is told, and differences
    phi = torch.tensor([[1, 1, 0, 0, 0, 1, 0], [0, -1, 1, 0, 0, 0, 0], [0, -1, 0, 1, 0, 0, 0], [0, 0, 0, 0, 1, 0, 0],
                        [0, 0, 0, 0, 0, -1, 1]], dtype=double)  # fmt: skip
    assert torch.equal(told, phi if level else phi[1:])
    kernel = LinearTastesKernel(columns.num).requires_grad_(False)
    kernel.register_buffer("told", told)
    root = torch.randn(7, 7, dtype=double, generator=torch.Generator().manual_seed(0)).tril()
    kernel.raw_root.data.copy_(root)
    expected = torch.logdet(told @ root @ root.mT @ told.mT)
    assert 2 * float(panel._told_sizes(kernel).log().sum()) == pytest.approx(float(expected), abs=1e-3)
    kernel.raw_root.data.zero_()  # all alike: no likelihood can make up for it
    assert float(panel._told_sizes(kernel).log().sum()) < -6 * len(told)


def test_models_with_these_priors_can_be_pickled():
    X, options, person, _ = panel_of_choices(people=2, each=2)
    points = X.flatten(0, 1)
    data = panel._Panel(points, [Choice(options, judge=person)], panel._Columns(points, []), 2, 12)
    model = data.first()
    names = [name for name, *_ in model.named_priors()]
    assert [name for name, *_ in pickle.loads(pickle.dumps(model)).named_priors()] == names
    assert {"covar_module.variance_prior", "judge_covar_module.told_prior"} <= {*names}


@pytest.mark.slow
def test_grades_without_differences_have_levels_alone():
    X = torch.rand(200, 2, dtype=double, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(1)
    person = torch.arange(200) % 10
    level = torch.randn(10, dtype=double, generator=generator)[person]
    noisy = 3 * X[:, 0] + level + torch.randn(200, dtype=double, generator=generator)
    grades = Ordinal((noisy.unsqueeze(-1) > torch.tensor([0.5, 1.5, 2.5])).sum(-1), 4, judge=person)
    model = fit_panel(X, grades)
    assert kinds_of(model) == (["LinearKernel"], ["LinearTastesKernel"])
    assert len(model.judge_covar_module.root) == 1
    assert model.likelihood.parameters_by_judge == ["stretch"]


def test_without_people_there_are_no_own_parts():
    X = torch.rand(40, 1, dtype=double, generator=torch.Generator().manual_seed(0))
    model = fit_panel(X, Binary(X[:, 0] > 0.5))
    assert model.judge_covar_module is None
    assert float(model.predictive(torch.ones(1, 1, dtype=double)).probs) > 0.9


def narrow(people):
    """Duels about a wave in the first of four inputs, by one person or many; and pairs to ask about."""
    generator = torch.Generator().manual_seed(5)
    X = torch.rand(200, 2, 4, dtype=double, generator=generator)
    order = chosen_of(3 * (15 * X[..., 0]).sin(), generator)
    pairs = torch.arange(400).view(200, 2).gather(-1, order)
    judge = torch.arange(160) % people if people > 1 else None
    return X.flatten(0, 1), Preference(pairs[:160], judge=judge), pairs[160:]


@pytest.mark.parametrize("people", [1, 8])
def test_a_narrow_effect_beside_irrelevant_inputs_is_seen(people):
    """One lengthscale for all inputs would be short where nothing happens, or long where something does."""
    X, duels, asked = narrow(people)
    model = fit_panel(X, duels, num_inducing=40)
    first = model.predictive(X[asked]).probs[..., 0]
    assert first.log().mean() > -0.5  # of chance -0.69; one lengthscale stays there
    kernel = getattr(model.covar_module, "kernels", [model.covar_module])[-1].base_kernel
    assert kernel.lengthscale.flatten().argmin() == 0


@pytest.mark.parametrize(
    ("observations", "categories", "error", "match"),
    [
        (Choice(torch.zeros(0, 2, dtype=torch.long)), [], InputDataError, "must hold an answer or more"),
        (Binary([0, 1, 0]), [2], InputDataError, "categories is about inputs 0 to 1"),
        (Binary([0, 1, 0]), [0], InputDataError, "Input 0 of categories must hold whole numbers"),
        (Numeric([0.0, 1.0, 2.0], judge=[0, 1, 0]), [], UnsupportedError, "Numbers of several people"),
    ],
)
def test_what_cannot_be_is_refused_in_words(observations, categories, error, match):
    with pytest.raises(error, match=match):
        fit_panel(torch.tensor([[0.5, 1.0], [1.0, 0.0], [0.0, 1.0]]).double(), observations, categories)


def test_a_category_alone_and_one_that_is_not_known():
    answers = Ordinal([0, 1, 1, 0, 1, 2], 3, judge=[0, 0, 1, 1, 2, 2])
    model = fit_panel(torch.zeros(6, 1, dtype=double), answers, categories=[0])
    asked = torch.zeros(1, 1, dtype=double)
    assert float(model.predictive(asked, judge=0).probs.sum()) == pytest.approx(1.0)
    with pytest.raises(InputDataError, match="Input 0 must hold numbers of categories from 0 to 1; got"):
        model.predictive(asked + 2, judge=0)


@pytest.fixture
def duels():
    """Points and answers of one person."""
    X = torch.rand(12, 1, dtype=double, generator=torch.Generator().manual_seed(0))
    return X, Preference([[0, 1], [2, 3], [4, 5]])


def test_a_part_that_cannot_be_fitted_goes(duels, monkeypatch):
    fit = panel._Panel.fitted

    def failing(self, model, *options):
        if isinstance(model.covar_module, AdditiveKernel):
            raise ModelFittingError("planted")
        return fit(self, model, *options)

    monkeypatch.setattr(panel._Panel, "fitted", failing)
    monkeypatch.setattr(panel, "_rises", lambda model, scale: True)
    assert kinds_of(fit_panel(*duels))[0] == ["LinearKernel"]


def test_parts_that_are_worth_their_hyperparameters_stay(duels, monkeypatch):
    """Each of one scale or rate, from which it is told whether it is worth a fit."""
    X, told = duels
    tried = []

    def worth(model):
        parts = [part for kinds in kinds_of(model) for part in kinds]
        return 2.5 * (len(parts) + model.likelihood.learns_slips)

    def rises(model, scale):
        tried.extend(name for name, other in model.named_parameters() if other is scale)
        return True

    monkeypatch.setattr(panel._Panel, "fitted", lambda self, model, *options: model)
    monkeypatch.setattr(panel, "_rises", rises)
    monkeypatch.setattr(panel, "_evidence", worth)
    monkeypatch.setattr(panel, "learn_spreads", lambda mll, fit: 0.0)
    model = fit_panel(X, Preference(told.pairs, judge=[0, 1, 0]))
    assert kinds_of(model) == (["LinearKernel", "ScaleKernel"], ["LinearTastesKernel", "ScaleKernel"])
    smooth = [f"{name}.kernels.1.raw_outputscale" for name in ("covar_module", "judge_covar_module") for _ in range(3)]
    assert tried == [*smooth, "likelihood.raw_slip"]
    assert model.likelihood.learns_slips


@pytest.mark.parametrize("bump", [0.0, 10.0])
def test_evidence_rises_with_a_part_that_explains_something(bump):
    X = torch.linspace(0, 1, 12, dtype=double).unsqueeze(-1)
    data = panel._Panel(X, [Numeric(bump * (X[:, 0] - 0.5).square())], panel._Columns(X, []), 0, 12)
    for larger, _, _, scale in data._smooth_part(False, data.first()):
        before = scale.item()
        assert panel._rises(larger, scale) is bool(bump)
        assert scale.item() == before


def test_warnings_of_data_are_heard(duels, monkeypatch):
    fit = panel._Panel.fitted

    def warning(self, model, *options):
        warnings.warn("planted", InputDataWarning, stacklevel=1)
        return fit(self, model, *options)

    monkeypatch.setattr(panel._Panel, "fitted", warning)
    with pytest.warns(InputDataWarning, match="planted"):
        fit_panel(*duels)
