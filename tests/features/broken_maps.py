"""Broken maps, and the laws that have to reject them."""

from dataclasses import dataclass, replace

import feature_laws as laws
import pytest

from bochner.features.base import FeatureMap
from bochner.seeds import Seed

rejects = pytest.raises(AssertionError)


def mean(recipe, d, seeds=200, kernel=None):
    """The law of test_statistics.py; ``kernel`` is the one that the map claims, if the recipe has another."""
    X = laws.data(recipe, d)
    prepared = laws.fitted(recipe, d)
    laws.unbiased(laws.grams(prepared, d, X, seeds), (kernel or prepared.kernel).gram(X))


def variance(recipe, d, seeds=800):
    X = laws.data(recipe, d)
    prepared = laws.fitted(recipe, d)
    laws.stated_variance(laws.grams(prepared, d, X, seeds), prepared._draw(d, Seed(0)).variance(X))


@dataclass(frozen=True, eq=False, repr=False)
class Broken(FeatureMap):
    """A map whose drawn form is changed by ``change(drawn)``."""

    inner: FeatureMap | None = None
    change: object = None

    def _draw(self, d, seed):
        drawn = self.inner._draw(d, seed)
        self.change(drawn)
        return drawn

    def sized(self, n_features):
        return replace(self, n_features=n_features, inner=self.inner.sized(n_features))


def broken(inner, change):
    return Broken(inner.kernel, inner.n_features, inner, change)


def put(drawn, **attributes):
    for name, value in attributes.items():
        assert hasattr(drawn, name)
        setattr(drawn, name, value)
