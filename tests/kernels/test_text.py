"""The text form: what it means, how it prints, and what it refuses."""

import random

import numpy as np
import pytest

from bochner import kernels as k
from bochner.errors import BochnerError, KernelError

g, p, h = k.Gaussian(0.5), k.Polynomial(2), k.Linear()


def test_the_example_of_the_issue():
    kernel = k.parse("0.5*gaussian(gamma=0.1) + exp_chi2(gamma=1).on(f10:f300)")
    assert kernel == 0.5 * k.Gaussian(0.1) + k.ExpChi2(1.0).on("f10:f300")
    X = np.abs(np.random.default_rng(0).normal(size=(4, 301)))
    np.testing.assert_allclose(kernel.gram(X), 0.5 * k.Gaussian(0.1).gram(X) + k.ExpChi2(1.0).gram(X[:, 10:301]))


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("linear", h),
        ("linear()", h),
        ("Linear()", h),
        ("  linear ( )\n", h),
        ("gaussian(0.5)", g),
        ("gaussian(gamma=0.5,)", g),
        ("gaussian(gamma=5e-1)", g),
        ("gaussian(gamma=.5)", g),
        ("gaussian(gamma=5E-1)", g),
        ("gaussian", k.Gaussian("median")),
        ("gaussian(gamma=scale)", k.Gaussian("scale")),
        ("gaussian(gamma='scale')", k.Gaussian("scale")),
        ("gaussian(gamma=[0.1, 2, 3e1])", k.Gaussian([0.1, 2.0, 30.0])),
        ("polynomial(3, 0.5)", k.Polynomial(3, offset=0.5)),
        ("polynomial(3, offset=2)", k.Polynomial(3, offset=2.0)),
        ("dot_product([0, 1, 0.5])", k.DotProduct([0.0, 1.0, 0.5])),
        ("dot_product(coefficients=[1], radius=None)", k.DotProduct([1.0])),
        ("vovk_infinite(scale=norm)", k.VovkInfinite("norm")),
        ("2*linear", 2.0 * h),
        ("linear*2", 2.0 * h),
        ("2*3*linear", 6.0 * h),
        ("(2)*linear", 2.0 * h),
        ("linear + 0.5", h + 0.5),
        ("0.25 + 0.5", k.DotProduct([0.25]) + k.DotProduct([0.5])),
        ("0.5", k.DotProduct([0.5])),
        (
            "compose(polynomial(2), compose(homogeneous(3), gaussian(0.5)))",
            k.compose(p, k.compose(k.Homogeneous(3), g)),
        ),
        ("gaussian(0.5).over(chi2 + 2*linear)", g.over(k.Chi2() + 2.0 * h)),
        ("polynomial(2).normalized()", p.normalized()),
        ("(linear + polynomial(2)).normalized().on(0)", (h + p).normalized().on([0])),
        ("linear.on(0, 2, -1)", h.on([0, 2, -1])),
        ("linear.on([0, 2, -1])", h.on([0, 2, -1])),
        ("linear.on(1:3)", h.on([1, 2])),
        ("linear.on(:3, -2:)", h.on([":3", "-2:"])),
        ("linear.on(:)", h.on([":"])),
        ("linear.on(age, height:weight)", h.on(["age", "height:weight"])),
        ("linear.on('house number')", h.on(["house number"])),
        ("linear.on(größe)", h.on(["größe"])),
    ],
)
def test_meaning(text, kernel):
    assert k.parse(text) == kernel
    assert k.parse(str(kernel)) == kernel
    assert k.parse(repr(kernel)) == kernel
    assert k.parse(text.replace(" ", "   ").replace("house   number", "house number")) == kernel


def test_precedence():
    X = np.random.default_rng(0).normal(size=(5, 3))
    G, P, H = g.gram(X), p.gram(X), h.gram(X)
    names = {"a": str(g), "b": str(p), "c": str(h)}
    cases = {
        "(a+b)*c": (G + P) * H,
        "a+b*c": G + P * H,
        "a*b+c": G * P + H,
        "c*(a+b)": H * (G + P),
        "2*(a+b)*c": 2 * (G + P) * H,
        "(a+b)*2*(c+a)": (G + P) * 2 * (H + G),
        "((a+b)*c+a)*b": ((G + P) * H + G) * P,
        "a*3*b": 3 * G * P,
        "a*(3*b)": 3 * G * P,
        "2*(3*(a*b))+c": 6 * G * P + H,
    }
    for text, wanted in cases.items():
        kernel = k.parse("".join(names.get(letter, letter) for letter in text))
        np.testing.assert_allclose(kernel.gram(X), wanted, err_msg=text)
        assert k.parse(str(kernel)) == kernel
        assert k.parse(repr(kernel)) == kernel
    np.testing.assert_allclose(((g + p) * h).gram(X), (G + P) * H)
    np.testing.assert_allclose((h * (2.0 * (g + p))).gram(X), 2 * H * (G + P))


def test_python_reads_the_repr_too():
    kernel = 0.5 * (g + p) * h.on(["a b", "c"]) + k.Matern(1.5, [1.0, 2.0]).on(range(2, 9)) + k.compose(p, g.over(h))
    assert eval(repr(kernel), vars(k).copy()) == kernel


def test_flat_and_merged():
    assert ((g + p) + h) == (g + (p + h)) == k.Sum((g, p, h))
    assert ((g * p) * h) == (g * (p * h)) == k.Product((g, p, h))
    assert 2.0 * (3.0 * g) == k.Scale(6.0, g) == k.Scale(2.0, k.Scale(3.0, g))
    assert sum([g, p, h]) == g + p + h
    assert np.float64(2.0) * g == g * np.float32(2.0) == 2.0 * g
    assert str(h * (2 * g)) == "linear() * (2.0*gaussian(gamma=0.5))"


ODD = ["house number", "it's", 'say "hi"', 'it\'s "so"', "back\\slash", "new\nline", "tab\t", "a,b", "a:b c", "1e5"]
ODD += ["3abc", "-x", "größe", "名前", "\x00", "a.b", "[0]", " padded ", "x" * 300]


@pytest.mark.parametrize("name", ODD)
def test_odd_names_survive(name):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"first": [1.0, 2.0], name: [3.0, 4.0]})
    for kernel in (h.on([name]), h.on(["first", name]), h.on([name, 0, 1, 2, 3, 4])):
        assert k.parse(str(kernel)) == kernel
        assert k.parse(repr(kernel)) == kernel
        assert eval(repr(kernel), vars(k).copy()) == kernel
        assert k.from_json(kernel.to_json()) == kernel
    np.testing.assert_allclose(k.parse(str(h.on([name]))).gram(table), [[9.0, 12.0], [12.0, 16.0]])


def test_runs_of_positions_print_as_ranges():
    kernel = h.on(range(10, 300))
    assert str(kernel) == "linear().on(10:300)"
    assert repr(kernel) == "Linear().on('10:300')"
    assert str(h.on([0, 1, 2])) == "linear().on(0, 1, 2)"
    assert str(h.on([0, 5, 6, 7, 8, 3])) == "linear().on(0, 5:9, 3)"
    assert h.on("10:300") == h.on(slice(10, 300)) == kernel
    assert h.on(3) == h.on([3]) == h.on("3") == h.on(np.array([3]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a kernel at position 1"),
        ("   ", "expected a kernel"),
        ("gausian(1)", "no kernel 'gausian'; did you mean gaussian"),
        ("zebra", r"no kernel 'zebra' \(known: "),
        ("linear(", "expected a value at position 8 .*, got the end"),
        ("(linear", r"expected '\)' at position 8 .*, got the end"),
        ("linear)", r"expected .* or the end at position 7 .*, got '\)'"),
        ("linear linear", "or the end at position 8"),
        ("linear +", "expected a kernel at position 9"),
        ("linear * + linear", "expected a kernel"),
        ("linear ?", r"cannot read '\?' at position 8"),
        ("-1*linear", "expected a kernel at position 1"),
        ("0*linear", "factor of a kernel must be a finite number > 0"),
        ("1e999*linear", "factor of a kernel must be a finite number > 0"),
        ("linear + 0", "constant kernel must be a finite number > 0"),
        ("gaussian(width=1)", "gaussian: .*unexpected keyword argument 'width'"),
        ("gaussian(1, 2, 3)", "gaussian: .*positional"),
        ("gaussian(gamma=1, gamma=2)", "gamma is given twice"),
        ("gaussian(gamma=1, 2)", "expected name=value"),
        ("gaussian(gamma=)", "expected a value"),
        ("gaussian(gamma=wide)", "gamma must be a positive number or one of"),
        ("gaussian(gamma=-1)", "gamma must be a finite number > 0, got -1"),
        ("gaussian(gamma=0)", "gamma must be a finite number > 0"),
        ("gaussian(gamma=[1, 0])", r"gamma\[1\] must be"),
        ("gaussian(gamma=[])", "one number for each column"),
        ("gaussian(gamma=[[1]])", "expected a value"),
        ("gaussian(gamma=True)", "gamma must be a number"),
        ("exp_chi2(gamma=[1, 2])", "gamma must be a number"),
        ("exponential(sigma='1')", "sigma must be a number"),
        ("matern()", "matern: .*missing"),
        ("matern(nu=101)", "at most 100"),
        ("polynomial(2.5)", "whole number"),
        ("polynomial(0)", "degree must be"),
        ("homogeneous(degree=1e300)", "whole number"),
        ("dot_product()", "either coefficients"),
        ("dot_product(function=exp)", "function must be callable"),
        ("compose(gaussian(1), linear)", "must be a dot-product kernel"),
        ("compose(linear)", "expected ','"),
        ("laplacian(1).over(linear)", "not a function of the Euclidean distance"),
        ("linear.over(linear)", "only a radial kernel"),
        ("gaussian([1, 2]).over(linear)", "one scale"),
        ("linear.transposed()", "expected on, over or normalized"),
        ("linear.on()", "at least one column"),
        ("linear.on(-)", "expected a position"),
        ("linear.on(1.5)", "expected a position"),
        ("linear.on(3:3)", "empty"),
        ("linear.on(+)", "expected a column"),
        ("linear.on('a)", "cannot read"),
        (r"linear.on('\x')", "broken escapes"),
        ("2.on(0)", "expected"),
        ("sum(linear, linear)", "sum: takes 2 positional"),
        ("__import__('os')", "no kernel '__import__'"),
        ("linear.__class__", "expected on, over"),
        ("linear; import os", "cannot read ';'"),
        ("lambda: 0", "no kernel 'lambda'"),
        ("linear if 1 else 2", "or the end"),
        ("gaussian(gamma=__import__('os').getpid())", r"expected '\)'|gamma must be"),
        ("{'a': 1}", "cannot read"),
        ("(" * 1000 + "linear" + ")" * 1000, "nested deeper than"),
        ("gaussian(" + "[" * 50_000, "expected a value"),
        ("linear" + ".normalized()" * 5_000, "nested deeper than"),
        ("gaussian(gamma=" + "1" * 5_000 + ")", "gamma must be a finite number"),
        ("linear + linear.on(" + "1" * 5_000 + ")?", "cannot read"),
        ("linear + " * 20_000, "at most 100000 characters"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_refused(text, message):
    with pytest.raises(KernelError, match=message) as caught:
        k.parse(text)
    assert len(str(caught.value)) < 1_000


def test_only_text_is_parsed():
    with pytest.raises(KernelError, match="is a string, got bytes"):
        k.parse(b"linear")


def test_long_texts_are_read_quickly():
    assert len(k.parse(" + ".join(["linear"] * 10_000)).parts) == 10_000
    assert len(k.parse("*".join(["linear"] * 10_000)).parts) == 10_000


def test_parsing_runs_nothing(tmp_path):
    target = tmp_path / "made"
    for text in (
        f"open('{target}', 'w')",
        f"linear.on(open('{target}', 'w'))",
        f"gaussian(gamma=open('{target}', 'w'))",
    ):
        with pytest.raises(KernelError):
            k.parse(text)
    assert not target.exists()


LETTERS = [*"()[]+*-.,:='\"\\ \n0123456789eE_abfgxγ∞", "linear", "on", "over", "1e5", "gaussian", "norm", "None"]


def mutated(text, rng):
    parts = list(text)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        at, other = rng.randrange(len(parts) + 1), rng.randrange(len(parts) + 1)
        match rng.randrange(4):
            case 0:
                del parts[at : at + rng.choice([1, 1, 5])]
            case 1:
                parts.insert(at, rng.choice(LETTERS))
            case 2:
                parts[at : at + 1] = [rng.choice(LETTERS)]
            case _:
                parts[at:at] = parts[min(at, other) : max(at, other)]
    return "".join(parts)


def test_fuzz():
    """Mutations of valid texts parse to a kernel that prints as itself, or are refused; nothing else happens."""
    rng = random.Random(0)
    texts = [str(kernel) for kernel in k.examples()]
    texts += ["2*(linear + polynomial(3, 0.5)).on(4:, -1, abc)*3 + 0.25", "gaussian(gamma=[0.1, 25, 1e-3]).on(2:5)"]
    texts += [str(h.on(["a b", "c", 4])), "0.5*gaussian(gamma=0.1) + exp_chi2(gamma=1).on(f10:f300)"]
    parsed = 0
    for _ in range(2_000):
        text = mutated(rng.choice(texts), rng)
        try:
            kernel = k.parse(text)
        except BochnerError:
            continue
        parsed += 1
        assert k.parse(str(kernel)) == kernel, text
        assert k.parse(repr(kernel)) == kernel, text
        assert k.from_json(kernel.to_json()) == kernel, text
    assert 100 < parsed < 1_900
