"""Parameters of both estimators: signature, documentation and constraints agree."""

import inspect
import re

import pytest

from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax
from sklearn_xc.softmax.classifier import SoftmaxClassifier

each_estimator = pytest.mark.parametrize("estimator", [SoftmaxUMax, ImplicitSoftmaxSGD])
OWN = {SoftmaxUMax: {"rule"}, ImplicitSoftmaxSGD: set()}


def section(estimator, title):
    """Return a section of the docstring, without its indent."""
    doc = inspect.getdoc(estimator)
    return re.search(rf"^{title}\n-+\n(.*?)(?=^\w[^\n]*\n---|\Z)", doc, re.M | re.S)[1]


@each_estimator
def test_every_parameter_is_documented_in_the_order_of_the_signature(estimator):
    entries = re.findall(r"^(\w+) : (.*)$", section(estimator, "Parameters"), re.M)
    parameters = inspect.signature(estimator).parameters.values()
    assert [name for name, _ in entries] == [parameter.name for parameter in parameters]
    for parameter, (name, text) in zip(parameters, entries, strict=True):
        value = repr(parameter.default).replace("'", '"')
        found = re.search(r"default=(.*)$", text)[1]
        assert found == value or float(found) == float(value), name


@each_estimator
def test_every_fitted_attribute_is_documented(estimator, xy):
    model = estimator(learning_rate=0.1, max_iter=2, random_state=0).fit(*xy)
    text = section(estimator, "Attributes")
    documented_names = set(re.findall(r"\w+_\b", "\n".join(re.findall(r"^\S.*$", text, re.M))))
    fitted = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    assert fitted <= documented_names <= fitted | {"feature_names_in_"}


@each_estimator
def test_constraints_are_those_of_the_signature(estimator):
    names = set(inspect.signature(estimator).parameters)
    assert set(estimator._parameter_constraints) == names
    assert names == set(SoftmaxClassifier._parameter_constraints) | OWN[estimator]


@pytest.mark.parametrize(
    ("rule", "needs", "wrong"),
    [
        ("nce", {"sampling": "uniform"}, {"sampling": "frequency"}),
        ("raman", {"init": "zero", "fit_intercept": False}, {"n_hard_negatives": 2}),
    ],
)
def test_rules_that_need_other_parameters(rule, needs, wrong, xy):
    model = SoftmaxUMax(rule=rule, learning_rate=0.1, max_iter=2, **needs).fit(*xy)
    assert model.n_iter_ == 2
    with pytest.raises(ValueError, match=f"rule='{rule}' needs .* Got "):
        model.set_params(**wrong).fit(*xy)
