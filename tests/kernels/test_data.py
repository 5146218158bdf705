"""What kernels accept as rows, and how they say what is wrong with them."""

import numpy as np
import pytest
import scipy.sparse as sp

from bochner import kernels as k
from bochner.errors import DataError, DomainError, KernelError

NAMES = ["a", "b", "c", "d"]


def as_pandas(X, names):
    return pytest.importorskip("pandas").DataFrame(X, columns=names)


def as_polars(X, names):
    return pytest.importorskip("polars").DataFrame(X, schema=names, orient="row")


def as_arrow(X, names):
    return pytest.importorskip("pyarrow").table({name: X[:, j] for j, name in enumerate(names)})


def as_batch(X, names):
    return as_arrow(X, names).to_batches()[0]


TABLES = [as_pandas, as_polars, as_arrow, as_batch]
each_table = pytest.mark.parametrize("table", TABLES, ids=lambda make: make.__name__)


def counts(n=6, d=4):
    return np.random.default_rng(0).random((n, d))


# ---- tables
@each_table
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, bool])
def test_a_table_is_its_array(table, dtype):
    X = (2.0 * counts()).astype(dtype)
    for kernel in (k.Gaussian(0.5), k.Chi2(), k.Polynomial(2).on([1, 3])):
        G = kernel.gram(table(X, NAMES))
        assert G.dtype == (np.float32 if dtype is np.float32 else np.float64)
        np.testing.assert_allclose(G, kernel.gram(X), rtol=1e-14)
        np.testing.assert_allclose(kernel.diag(table(X, NAMES)), kernel.diag(X), rtol=1e-14)


@each_table
def test_columns_by_name(table):
    X = counts()
    T = table(X, NAMES)
    for columns, index in [
        ("b:d", [1, 2, 3]),
        ("b", [1]),
        ("d, a", [3, 0]),
        (["d", "a:b"], [3, 0, 1]),
        ([-1, "a"], [3, 0]),
    ]:
        kernel = k.Gaussian(0.5).on(columns)
        assert np.array_equal(kernel.gram(T), k.Gaussian(0.5).gram(X[:, index]))
        assert kernel.resolve(T) == k.Gaussian(0.5).on(index)
        assert np.array_equal(kernel.gram(T, X), kernel.gram(T))


def test_columns_without_names_are_called_f0_f1():
    X = counts()
    for columns, index in [
        ("f1:f3", [1, 2, 3]),
        ("f2", [2]),
        ("1:3", [1, 2]),
        (slice(1, None), [1, 2, 3]),
        ("-2:", [2, 3]),
    ]:
        assert np.array_equal(k.Chi2().on(columns).gram(X), k.Chi2().gram(X[:, index]))
        assert np.array_equal(k.Chi2().on(columns).gram(sp.csr_array(X)), k.Chi2().gram(X[:, index]))


def test_a_frame_of_a_bare_array_has_no_names():
    pd = pytest.importorskip("pandas")
    X = counts()
    assert np.array_equal(k.Chi2().on("f1:f2").gram(pd.DataFrame(X)), k.Chi2().gram(X[:, 1:3]))


def test_columns_of_columns():
    X = counts()
    nested = k.Gaussian(0.5).on([2, 0]).on([3, 1, 2])
    assert np.array_equal(nested.gram(X), k.Gaussian(0.5).gram(X[:, [2, 3]]))
    named = k.Gaussian(0.5).on(["c"]).on("b:d")
    assert np.array_equal(named.gram(as_pandas(X, NAMES)), k.Gaussian(0.5).gram(X[:, [2]]))


@pytest.mark.parametrize(
    ("columns", "message", "column"),
    [
        ([4], "asks for column 4, the rows have 4", 4),
        ([-5], "asks for column -5, the rows have 4", -5),
        (["2:9"], "asks for column 4, the rows have 4", 4),
        (["3:9999999"], "asks for columns 3:9999999, the rows have 4", "3:9999999"),
        (["9:"], "asks for columns 9:, the rows have 4", "9:"),
        (["e"], "asks for column 'e' .* the rows have a, b, c, d", "e"),
        (["a:e"], "asks for column 'e' .in 'a:e'.", "e"),
        (["c:a"], "but a comes before c", "c:a"),
    ],
)
def test_missing_columns(columns, message, column):
    with pytest.raises(DataError, match=message) as caught:
        k.Linear().on(columns).gram(as_pandas(counts(), NAMES))
    assert caught.value.column == column


def test_two_columns_of_one_name():
    T = as_pandas(counts(), ["a", "b", "a", "c"])
    assert k.Linear().on(["b"]).gram(T).shape == (6, 6)
    with pytest.raises(DataError, match="several of that name"):
        k.Linear().on(["a"]).gram(T)


def test_tables_with_other_columns_are_not_compared():
    X = counts()
    with pytest.raises(DataError, match="column 1 is 'b' in X and 'c' in Y") as caught:
        k.Linear().gram(as_pandas(X, NAMES), as_pandas(X, ["a", "c", "b", "d"]))
    assert caught.value.column == 1
    with pytest.raises(DataError, match="X has 4 columns and Y has 3"):
        k.Linear().gram(X, X[:, :3])


def test_bad_choices_of_columns():
    for columns in ([], [1.5], [None], None, 2.5, [True], [""], slice(0, 4, 2), ["3:1"]):
        with pytest.raises(KernelError):
            k.Linear().on(columns)


# ---- bad values
BAD = [
    (k.Gaussian(0.5), np.nan),
    (k.Gaussian(0.5), np.inf),
    (k.Linear(), -np.inf),
    (k.Chi2(), -0.25),
    (k.ExpChi2(1.0), -0.25),
]
BAD += [(k.ReciprocalSemigroup(1.0), -1e-9), (k.SkewedChi2(0.5), -0.5), (k.SkewedIntersection(0.5), -0.75)]
BAD += [
    (2.0 * k.Chi2() + k.Linear(), -1.0),
    (k.Gaussian(1.0).over(k.Chi2()), -1.0),
    (k.Intersection().normalized(), -1.0),
]
BAD += [(k.compose(k.Exponential(), k.Hellinger()), -1.0), (k.JensenShannon() * k.Linear(), -1.0)]


def forms():
    yield from ((make, "'c'") for make in TABLES)
    yield from (
        (lambda X, names, form=form: form(X), "2") for form in (np.array, np.asfortranarray, sp.csr_array, sp.coo_array)
    )


@pytest.mark.parametrize(("kernel", "bad"), BAD, ids=str)
def test_the_message_names_row_and_column(kernel, bad):
    X = counts()
    X[3, 2], X[4, 0] = bad, bad
    for form, shown in forms():
        for spoil in (lambda T: kernel.gram(T), lambda T: kernel.diag(T), lambda T: kernel.gram(counts(), T)):
            with pytest.raises(DataError, match=rf"^row 3, column {shown} is {bad:g}[,;]") as caught:
                spoil(form(X, NAMES))
            assert (caught.value.row, caught.value.column) == (3, 2)
            assert isinstance(caught.value, DomainError) == bool(np.isfinite(bad))


def test_the_place_is_that_of_the_whole_rows():
    X = counts()
    X[3, 2] = -1.0
    for kernel in (k.Chi2().on([0, 2]), k.Chi2().on([1, 0]).on([3, 2]), k.Linear() + k.Chi2().on(["f2"])):
        for form in (np.array, sp.csr_array):
            with pytest.raises(DomainError, match=r"^row 3, column 2 is -1") as caught:
                kernel.gram(form(X))
            assert (caught.value.row, caught.value.column) == (3, 2)
    with pytest.raises(DomainError, match=r"^row 3, column 'c' is -1"):
        k.Chi2().on("b:d").gram(as_pandas(X, NAMES))


def test_what_is_not_chosen_may_be_anything_in_the_domain():
    X = counts()
    X[:, 0] = -1.0
    assert k.Chi2().on([1, 2]).gram(X).shape == (6, 6)
    assert k.Gaussian([1.0, 2.0]).on([1, 2]).gram(X).shape == (6, 6)


def test_rows_beyond_the_radius():
    X = 0.4 * np.eye(4)
    X[2] *= 5.0
    for form in (np.array, sp.csr_array):
        with pytest.raises(DomainError, match=r"row 2 has <x, x> = 4, .* only for \|<x, y>\| < 4") as caught:
            k.VovkInfinite(4.0).gram(form(X))
        assert (caught.value.row, caught.value.column) == (2, None)
    with pytest.raises(DomainError, match="row 2"):
        k.VovkInfinite(4.0).gram(X[:2], X)


def test_a_scale_for_each_column_needs_as_many_columns():
    for kernel in (k.Gaussian([1.0, 2.0]), k.Laplacian([1.0, 2.0]), k.Matern(1.5, [1.0, 2.0])):
        with pytest.raises(DataError, match=r"has 2 values of .*, the rows have 4 columns"):
            kernel.gram(counts())


@pytest.mark.parametrize(
    "kernel",
    [k.Gaussian(), k.SkewedChi2(), k.ExponentialSemigroup(), k.VovkInfinite("norm"), k.ExpChi2() + k.Linear()],
    ids=str,
)
def test_what_is_left_to_the_data_is_refused_by_name(kernel):
    X = counts()
    for call in (kernel.gram, kernel.diag):
        with pytest.raises(KernelError, match=r"left to the data; call kernel.resolve"):
            call(X)
    with pytest.raises(KernelError, match="left to the data"):
        kernel.resolve(None)


@pytest.mark.parametrize(
    "fact",
    [
        lambda: k.Gaussian().spectrum(),
        lambda: k.Laplacian("mean").spectrum(),
        lambda: k.Matern(1.5).spectrum(),
        lambda: k.SkewedChi2().spectrum(),
        lambda: k.ExponentialSemigroup().laplace(),
        lambda: k.ReciprocalSemigroup().laplace(),
        lambda: k.VovkInfinite("norm").series(),
        lambda: k.DotProduct([1.0], scale="norm").series(),
        lambda: k.ExpChi2().radial(),
    ],
)
def test_facts_of_what_is_left_to_the_data(fact):
    with pytest.raises(KernelError, match=r"is left to the data; call kernel.resolve"):
        fact()


def test_masked_entries_are_missing():
    X = np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[False, False], [False, True]])
    with pytest.raises(DataError, match="row 1, column 1 is nan"):
        k.Linear().gram(X)
    assert k.Linear().gram(np.ma.array([[1, 2]])).tolist() == [[5.0]]


def test_a_long_kernel_is_cut_in_errors():
    kernel = k.DotProduct(function=np.tan, radius=np.pi / 2)
    with pytest.raises(DomainError) as caught:
        kernel.gram([[3.0]])
    assert len(str(caught.value)) < 400
