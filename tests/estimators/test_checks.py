"""scikit-learn's own checks of every estimator."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from bochner import KernelCCA, KernelClassifier, KernelKMeans, KernelPCA, KernelRegressor, features, kernels

#: nothing is chosen from a sample of the rows
FIXED = {"kernel": "gaussian(gamma=0.1)", "n_features": 32, "alpha": 0.1, "random_state": 0}
G, L = kernels.Gaussian(0.1), kernels.Laplacian(0.1)
STACKED = features.Concatenate(G + L, 32, (features.RandomFourier(G, 16), features.RandomFourier(L, 16)))
CHOOSING = (
    "kernel, bandwidth, map and folds are chosen from the rows, so that a row that is repeated has another part "
    "in the choice than one of weight two"
)
DRAWING = "the first centres are rows drawn at random, so that rows in another order give other clusters"


def expected_failures(estimator):
    if getattr(estimator, "map", None) or estimator.kernel not in ("auto", "gaussian(gamma=median)"):
        why = None
    else:
        why = CHOOSING
    if isinstance(estimator, KernelKMeans):
        why = DRAWING
    return {f"check_sample_weight_equivalence_on_{kind}_data": why for kind in ("dense", "sparse") if why}


@parametrize_with_checks(
    [
        KernelRegressor(random_state=0),
        KernelRegressor(**FIXED),
        KernelRegressor(**FIXED, pca=0.999),
        KernelClassifier(random_state=0),
        KernelClassifier(**FIXED, calibrate=False),
        KernelCCA(random_state=0),
        KernelCCA(map=features.RandomFourier(kernels.Gaussian(0.1), 16), alpha=0.1, scaling="none", random_state=0),
        KernelPCA(random_state=0),
        KernelPCA("gaussian(gamma=0.1)", n_features=32, random_state=0),
        KernelClassifier(**FIXED, calibrate=False, penalty="lasso"),
        KernelRegressor(**FIXED, map=STACKED, penalty="group"),
        KernelKMeans(3, "gaussian(gamma=0.1)", 32, random_state=0),
        KernelKMeans(3, random_state=0, batch_size=16),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
