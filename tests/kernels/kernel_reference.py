"""Every kernel once more, straight from its definition: one pair of rows, Python floats, no shortcuts."""

from functools import singledispatch
from math import cosh, exp, factorial, fsum, gamma, inf, log, log2, prod, sqrt

from scipy.integrate import quad

from bochner import kernels as k


@singledispatch
def value(kernel, x, y):
    """K(x, y)."""
    return of_product(kernel, dot(x, y))


def dot(x, y):
    return fsum(a * b for a, b in zip(x, y, strict=True))


def squared(x, y, scales):
    scales = scales if isinstance(scales, tuple) else (scales,) * len(x)
    return fsum((c * (a - b)) ** 2 for a, b, c in zip(x, y, scales, strict=True))


def per_column(parameter, power):
    return tuple(p**power for p in parameter) if isinstance(parameter, tuple) else parameter**power


# ---- dot-product kernels, as functions of t = ⟨x, y⟩
@singledispatch
def of_product(kernel, t):
    raise NotImplementedError(type(kernel).__name__)


@of_product.register
def _(kernel: k.Linear, t):
    return t


@of_product.register
def _(kernel: k.Homogeneous, t):
    return prod([t] * kernel.degree)


@of_product.register
def _(kernel: k.Polynomial, t):
    return prod([t + kernel.offset] * kernel.degree)


@of_product.register
def _(kernel: k.VovkReal, t):
    return fsum(t**n for n in range(kernel.degree))


@of_product.register
def _(kernel: k.VovkInfinite, t):
    return kernel.scale / (kernel.scale - t)


@of_product.register
def _(kernel: k.Exponential, t):
    return exp(t / kernel.sigma**2)


@of_product.register
def _(kernel: k.DotProduct, t):
    t = t / kernel.scale
    if kernel.coefficients is None:  # the only function among the examples
        return cosh(t)
    return fsum(a * t**n for n, a in enumerate(kernel.coefficients))


# ---- shift-invariant kernels, as functions of the squared distance
@singledispatch
def of_squared(kernel, r2):
    raise NotImplementedError(type(kernel).__name__)


@of_squared.register
def _(kernel: k.Gaussian, r2):
    return exp(-r2)


@of_squared.register
def _(kernel: k.Cauchy, r2):
    return 1 / (1 + r2)


@of_squared.register
def _(kernel: k.RationalQuadratic, r2):
    return (1 + r2 / (2 * kernel.alpha)) ** -kernel.alpha


@of_squared.register
def _(kernel: k.Matern, r2):
    # 2^(1−ν)/Γ(ν) z^ν K_ν(z) as a mixture of Gaussians, without Bessel functions.
    nu, quarter = kernel.nu, 0.5 * kernel.nu * r2
    integral, _ = quad(
        lambda t: exp(nu * t - exp(t) - quarter * exp(-t)), -40 / nu - 5, 7, limit=500, epsabs=1e-13, epsrel=1e-12
    )
    return integral / gamma(nu)


def scales(kernel):
    if isinstance(kernel, (k.Gaussian, k.Cauchy)):
        return per_column(kernel.gamma, 0.5)
    return per_column(kernel.lengthscale, -1)


@value.register(k.Gaussian)
@value.register(k.Cauchy)
@value.register(k.RationalQuadratic)
@value.register(k.Matern)
def _(kernel, x, y):
    return of_squared(kernel, squared(x, y, scales(kernel)))


@value.register
def _(kernel: k.Laplacian, x, y):
    factors = kernel.gamma if isinstance(kernel.gamma, tuple) else (kernel.gamma,) * len(x)
    return exp(-fsum(g * abs(a - b) for g, a, b in zip(factors, x, y, strict=True)))


# ---- additive kernels
def additive(pair):
    def kernel_value(kernel, x, y):
        power = 0.5 * (kernel.degree - 1)
        return fsum(a**power * b**power * pair(a, b) for a, b in zip(x, y, strict=True) if a > 0 < b)

    return kernel_value


value.register(k.Hellinger, additive(lambda a, b: sqrt(a * b)))
value.register(k.Chi2, additive(lambda a, b: 2 * a * b / (a + b)))
value.register(k.Intersection, additive(min))
value.register(k.JensenShannon, additive(lambda a, b: a / 2 * log2((a + b) / a) + b / 2 * log2((a + b) / b)))


@value.register
def _(kernel: k.ExpChi2, x, y):
    return exp(-kernel.gamma * fsum((a - b) ** 2 / (a + b) for a, b in zip(x, y, strict=True) if a + b > 0))


@value.register
def _(kernel: k.SkewedChi2, x, y):
    e = kernel.skew
    return prod(2 * sqrt((a + e) * (b + e)) / (a + b + 2 * e) for a, b in zip(x, y, strict=True))


@value.register
def _(kernel: k.SkewedIntersection, x, y):
    ratios = [(a + kernel.skew) / (b + kernel.skew) for a, b in zip(x, y, strict=True)]
    return prod(min(sqrt(r), sqrt(1 / r)) for r in ratios)


# ---- semigroup kernels
@value.register
def _(kernel: k.ExponentialSemigroup, x, y):
    return prod(exp(-kernel.beta * sqrt(a + b)) for a, b in zip(x, y, strict=True))


@value.register
def _(kernel: k.ReciprocalSemigroup, x, y):
    return prod(kernel.lam / (kernel.lam + a + b) for a, b in zip(x, y, strict=True))


# ---- kernels of kernels
@value.register
def _(kernel: k.Sum, x, y):
    return fsum(value(part, x, y) for part in kernel.parts)


@value.register
def _(kernel: k.Product, x, y):
    return prod(value(part, x, y) for part in kernel.parts)


@value.register
def _(kernel: k.Scale, x, y):
    return kernel.factor * value(kernel.inner, x, y)


@value.register
def _(kernel: k.Compose, x, y):
    return of_product(kernel.outer, value(kernel.inner, x, y))


@value.register
def _(kernel: k.Over, x, y):
    inner = kernel.inner
    r2 = max(0.0, value(inner, x, x) + value(inner, y, y) - 2 * value(inner, x, y))
    return of_squared(kernel.outer, r2 * scales(kernel.outer) ** 2)


@value.register
def _(kernel: k.Normalized, x, y):
    own = value(kernel.inner, x, x) * value(kernel.inner, y, y)
    return value(kernel.inner, x, y) / sqrt(own) if own > 0 else 0.0


@value.register
def _(kernel: k.On, x, y):
    return value(kernel.inner, [x[j] for j in kernel.columns], [y[j] for j in kernel.columns])


#: Maclaurin coefficients of each dot-product kernel, degree by degree
def coefficient(kernel, n):
    """aₙ."""
    match kernel:
        case k.Linear():
            return float(n == 1)
        case k.Homogeneous(degree=p):
            return float(n == p)
        case k.Polynomial(degree=p, offset=r):
            binomial = prod(p - i for i in range(n)) // factorial(n)
            return binomial * r ** (p - n) if n <= p else 0.0
        case k.VovkReal(degree=p):
            return float(n < p)
        case k.VovkInfinite(scale=c):
            return c**-n
        case k.Exponential(sigma=s):
            return s ** (-2 * n) / factorial(n)
        case k.DotProduct(coefficients=None):
            return (n % 2 == 0) / factorial(n)
        case k.DotProduct(coefficients=a):
            return a[n] if n < len(a) else 0.0
    raise NotImplementedError(type(kernel).__name__)


def reach(kernel):
    """Below which ⟨x, y⟩ the series converges."""
    return kernel.scale if isinstance(kernel, k.VovkInfinite) else inf


def signature(kernel, t):
    """k(1, eᵗ)e^{−t/2} of the additive kernels."""
    match kernel:
        case k.Hellinger():
            return 1.0
        case k.Chi2():
            return 1 / cosh(t / 2)
        case k.Intersection():
            return exp(-abs(t) / 2)
        case k.JensenShannon():
            return (exp(t / 2) * log(1 + exp(-t)) + exp(-t / 2) * log(1 + exp(t))) / (2 * log(2))
    raise NotImplementedError(type(kernel).__name__)
