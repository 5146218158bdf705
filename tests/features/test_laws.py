"""Every law about one draw, over every example of every registered map."""

import feature_laws as laws
import numpy as np
import pytest

from bochner import features
from bochner.errors import DataError, MapError
from bochner.features.base import registered
from bochner.seeds import Seed

EXAMPLES = list(laws.examples())
DRAWN_LAWS = [laws.single_precision, laws.sparse, laws.row_by_row, laws.into_out, laws.survives]
# They decide which map to draw, and have no draw of their own.
DECIDING = {features.Best, features.Stacked}

each_example = pytest.mark.parametrize(
    ("recipe", "d"), [case[1:] for case in EXAMPLES], ids=[case[0] for case in EXAMPLES]
)


def drawn_and_rows(recipe, d):
    return laws.fitted(recipe, d)._draw(d, Seed(3)), laws.data(recipe, d)


def test_every_map_has_an_example():
    assert {type(recipe) for _, recipe, _ in EXAMPLES} | DECIDING == set(registered())
    assert {cls.__name__ for cls in registered()} <= set(features.__all__)


@pytest.mark.parametrize("law", DRAWN_LAWS, ids=lambda law: law.__name__)
@each_example
def test_drawn(recipe, d, law):
    law(*drawn_and_rows(recipe, d))


@each_example
def test_whole_numbers(recipe, d):
    laws.whole_numbers(drawn_and_rows(recipe, d)[0], d)


@each_example
def test_seeds(recipe, d):
    X = laws.data(recipe, d)
    laws.seeded(recipe, d, X)
    exact = isinstance(recipe, (features.Nystroem, features.PCAFeatures)) or np.allclose(
        laws.fitted(recipe, d)._draw(d, Seed(0)).variance(X, replicates=2), 0.0, atol=1e-12
    )
    if not exact:
        laws.random(laws.fitted(recipe, d), d, X)


@each_example
def test_width(recipe, d):
    extra = 1 + d if getattr(recipe, "exact_low_orders", False) else 0
    laws.width(drawn_and_rows(recipe, d)[0], recipe, extra)


@each_example
def test_facts(recipe, d):
    laws.keeps_facts(recipe, laws.fitted(recipe, d))


@pytest.mark.parametrize(
    ("recipe", "d"),
    [case[1:] for case in EXAMPLES if case[1].prefix_stable],
    ids=[case[0] for case in EXAMPLES if case[1].prefix_stable],
)
def test_prefix(recipe, d):
    laws.prefix(laws.fitted(recipe, d), d, laws.data(recipe, d))


@each_example
def test_without_a_sample(recipe, d):
    X = laws.data(recipe, d)
    if recipe.needs_sample:
        with pytest.raises(MapError, match="made from data"):
            recipe.draw(d)
    else:
        drawn = recipe.draw(d, seed=1)
        assert np.isfinite(drawn(X)).all()
        laws.survives(drawn, X)


@each_example
def test_variance_of_maps_without_randomness_is_zero(recipe, d):
    drawn, X = drawn_and_rows(recipe, d)
    if recipe.deterministic:
        assert not drawn.variance(X).any()
        assert not drawn.variance(X, X[:2]).any()
        assert drawn.variance(X, X[:2]).shape == (len(X), 2)


@each_example
def test_bad_rows_are_refused(recipe, d):
    drawn, X = drawn_and_rows(recipe, d)
    with pytest.raises(DataError, match=rf"drawn for {d} columns, the rows have {d + 1}"):
        drawn(np.zeros((2, d + 1)))
    with pytest.raises(DataError, match="two-dimensional"):
        drawn(X[0])
    broken = X.copy()
    broken[4, d - 1] = np.nan
    with pytest.raises(DataError, match=rf"row 4, column {d - 1} is nan") as caught:
        drawn(broken)
    assert (caught.value.row, caught.value.column) == (4, d - 1)
    with pytest.raises(DataError, match="out must have shape"):
        drawn(X, out=np.empty((len(X), drawn.width + 1)))
    with pytest.raises(DataError, match="dtype"):
        drawn(X, out=np.empty((len(X), drawn.width), dtype=np.float32))
    with pytest.raises(DataError, match=f"the sample has {d + 1} columns"):
        recipe.draw(d, sample=np.zeros((2, d + 1)))
    with pytest.raises(DataError, match="no rows"):
        recipe.draw(d, sample=np.zeros((0, d)))
    for law in (drawn.variance, drawn.gram):
        with pytest.raises(DataError, match=f"the rows have {d + 2}"):
            law(X, np.zeros((2, d + 2)))


@each_example
def test_the_gram_is_the_product_of_features(recipe, d):
    drawn, X = drawn_and_rows(recipe, d)
    laws.close(drawn.gram(X), drawn(X) @ drawn(X).T, 1e-12)
    laws.close(drawn.gram(X, X[:3]), drawn(X) @ drawn(X[:3]).T, 1e-12)
    assert drawn.kernel == drawn.map.kernel
    assert str(drawn.width) in repr(drawn)
    assert type(drawn.map).__name__ in repr(drawn.map)
