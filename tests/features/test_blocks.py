"""Which columns belong to which kernel of a sum."""

import numpy as np
import pytest

from bochner import features, kernels

X = np.abs(np.random.default_rng(0).normal(size=(200, 4)))
INNER = 3.0 * (kernels.Hellinger() + kernels.Linear())
SUM = 2.0 * kernels.Linear() + kernels.Polynomial(2) + kernels.Gaussian("median") + INNER.on([1, 2])


def test_every_kernel_of_a_sum_has_columns_of_its_own():
    recipe = features.choose(SUM, 400, sample=X, separate=True)
    drawn = recipe.draw(4, seed=0, sample=X)
    blocks = drawn.blocks()
    assert [str(kernel).split("(")[0] for kernel, _ in blocks] == ["2.0*linear", "polynomial", "gaussian", "", ""]
    stops = [0, *(own.stop for _, own in blocks)]
    assert [own.start for _, own in blocks] == stops[:-1]
    assert stops[-1] == drawn.width <= 400
    Z = drawn(X)
    for kernel, own in blocks:
        exact = kernel.gram(X)
        assert np.linalg.norm(Z[:, own] @ Z[:, own].T - exact) < 0.05 * np.linalg.norm(exact)
    assert str(blocks[3][0]) == "(3.0*hellinger()).on(1, 2)"
    again = features.from_recipe(drawn.recipe())
    assert again.blocks() == blocks


def test_parts_of_one_family_share_columns_unless_they_are_to_be_told_apart():
    kernel = kernels.Linear() + kernels.Polynomial(2)
    shared = features.choose(kernel, 64, d=4).draw(4, seed=0)
    assert shared.blocks() == ((kernel, slice(0, shared.width)),)
    apart = features.choose(kernel, 64, d=4, separate=True).draw(4, seed=0)
    assert [k for k, _ in apart.blocks()] == [kernels.Linear(), kernels.Polynomial(2)]
    np.testing.assert_allclose(apart.gram(X), shared.gram(X), rtol=1e-12)


@pytest.mark.parametrize("kernel", [kernels.Gaussian(0.5), kernels.Chi2(), kernels.Linear()])
def test_separate_parts_of_a_single_kernel_are_its_usual_map(kernel):
    one, two = (features.choose(kernel, 64, sample=X, separate=apart).draw(4, 0, X) for apart in (True, False))
    np.testing.assert_array_equal(one(X), two(X))


def test_the_number_of_features_of_separate_parts_can_be_found():
    kernel = kernels.Gaussian(0.1) + kernels.Gaussian(1.0)
    recipe = features.choose(kernel, "auto", tol=0.1, sample=X, separate=True)
    drawn = recipe.draw(4, seed=0, sample=X)
    assert len(drawn.blocks()) == 2
    assert features.error(drawn, kernel, X).relative < 0.2
