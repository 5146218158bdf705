"""The triangle that is added to, against the whole product."""

import numpy as np
import pytest

from bochner.hot.gram import add_gram, mirror
from bochner.hot.reference import add_gram as plain


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F", "strided"])
@pytest.mark.parametrize(("rows", "width"), [(1, 1), (3, 5), (40, 255), (7, 600), (100, 513)])
def test_the_gram_of_tiles_is_that_of_all_rows(rows, width, order, dtype):
    R = np.random.default_rng(rows).normal(size=(2 * rows, width)).astype(dtype)
    whole, found = np.zeros((width, width)), np.zeros((width, width))
    plain(R.astype(np.float64), whole)
    for tile in (R[:rows], R[rows:]):
        given = np.repeat(tile, 2, axis=1)[:, ::2] if order == "strided" else np.array(tile, order=order)
        given.flags.writeable = False
        add_gram(given, found)
        mirror(found)  # adding goes on after it
    assert np.array_equal(found, found.T)
    np.testing.assert_allclose(found, whole, atol=(1e-5 if dtype == np.float32 else 1e-13) * rows)
