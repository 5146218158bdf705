"""scikit-learn's own checks of every estimator."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from bochner import KernelClassifier, KernelRegressor, features, kernels

#: nothing is chosen from a sample of the rows
FIXED = {"kernel": "gaussian(gamma=0.1)", "n_features": 32, "alpha": 0.1, "random_state": 0}
G, L = kernels.Gaussian(0.1), kernels.Laplacian(0.1)
STACKED = features.Concatenate(G + L, 32, (features.RandomFourier(G, 16), features.RandomFourier(L, 16)))
CHOOSING = (
    "kernel, bandwidth, map and folds are chosen from the rows, so that a row that is repeated has another part "
    "in the choice than one of weight two"
)


def expected_failures(estimator):
    if getattr(estimator, "kernel", None) != "auto":
        return {}
    return {f"check_sample_weight_equivalence_on_{kind}_data": CHOOSING for kind in ("dense", "sparse")}


@parametrize_with_checks(
    [
        KernelRegressor(random_state=0),
        KernelRegressor(**FIXED),
        KernelClassifier(random_state=0),
        KernelClassifier(**FIXED, calibrate=False),
        KernelClassifier(**FIXED, calibrate=False, penalty="lasso"),
        KernelRegressor(**FIXED, map=STACKED, penalty="group"),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
