"""Choose a map for several kernels on the same rows, and see what it is worth at every width."""

import numpy as np
from sklearn.datasets import load_digits

from bochner import features, kernels

X = load_digits().data
X = X / X.sum(axis=1, keepdims=True)  # histograms of 8 × 8 pixels
sample, held_out = X[:900], X[900:]
d = X.shape[1]

for text in ("gaussian(gamma=median)", "laplacian(gamma=median)", "exp_chi2(gamma=mean) + 0.5*polynomial(degree=2)"):
    kernel = kernels.parse(text).resolve(sample)
    print(kernel)
    for width in (256, 1024):
        drawn = features.choose(kernel, width, d).draw(d, seed=0, sample=sample)
        found = features.error(drawn, held_out)
        print(f"  {drawn.width:5d} features: relative error {found.relative:.1e} [{found.low:.1e}, {found.high:.1e}]")
    print(f"  because: {drawn.map.why}")

# The least number of features for an error of 5 %, decided by measuring.
recipe = features.choose(kernels.Laplacian("median"), "auto", tol=0.05, sample=sample)
print(recipe.why)

# A map is kept as its recipe, and drawn again bit for bit.
drawn = recipe.draw(d, seed=0)
again = features.from_recipe(drawn.recipe())
assert np.array_equal(drawn(held_out), again(held_out))
