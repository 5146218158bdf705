"""Band form: an orthogonal change of basis, exact for every size around the width of the band."""

import numpy as np
import pytest
from scipy.linalg import LinAlgError, eigvals_banded

from bochner.solvers.band import BAND, reduced

rng = np.random.default_rng(0)


@pytest.mark.parametrize("D", [1, 2, 3, BAND - 1, BAND, BAND + 1, 2 * BAND - 1, 2 * BAND, 2 * BAND + 1, 300])
def test_a_solve_is_that_of_the_matrix(D):
    Z = rng.normal(size=(D + 10, D))
    S, C = Z.T @ Z, rng.normal(size=(D, 3))
    S.flags.writeable = C.flags.writeable = False
    banded = reduced(S)
    for penalty in (1e-3, 1.0, 1e5):
        found = banded.back(banded.solve(banded.rotated(C), penalty))
        direct = np.linalg.solve(S + penalty * np.eye(D), C)
        np.testing.assert_allclose(found, direct, rtol=0, atol=1e-11 * np.abs(direct).max())


def test_the_basis_is_orthogonal_and_eigenvalues_stay():
    S = rng.normal(size=(200, 200))
    S = S + S.T
    banded = reduced(S)
    np.testing.assert_allclose(banded.back(banded.rotated(np.eye(200))), np.eye(200), atol=1e-13)
    Q = banded.back(np.eye(200))
    np.testing.assert_allclose(Q.T @ Q, np.eye(200), atol=1e-13)
    np.testing.assert_allclose(eigvals_banded(banded.band, lower=True), np.linalg.eigvalsh(S), atol=1e-11)


def test_columns_that_are_zero_and_matrices_of_low_rank():
    Z = rng.normal(size=(20, 150))
    Z[:, 40:120] = 0.0
    S, C = Z.T @ Z, rng.normal(size=(150, 2))
    banded = reduced(S)
    found = banded.back(banded.solve(banded.rotated(C), 0.1))
    np.testing.assert_allclose(found, np.linalg.solve(S + 0.1 * np.eye(150), C), atol=1e-11)


def test_a_matrix_that_is_not_positive_definite_is_told():
    banded = reduced(np.diag(np.arange(100.0) - 50.0))
    with pytest.raises(LinAlgError):
        banded.solve(np.ones((100, 1)), 1.0)
