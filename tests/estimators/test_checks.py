"""scikit-learn's own checks of every estimator."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from bochner import KernelCCA, KernelClassifier, KernelPCA, KernelRegressor
from bochner.features import RandomFourier
from bochner.kernels import Gaussian

#: nothing is chosen from a sample of the rows
FIXED = {"kernel": "gaussian(gamma=0.1)", "n_features": 32, "alpha": 0.1, "random_state": 0}
CHOOSING = (
    "kernel, bandwidth, map and folds are chosen from the rows, so that a row that is repeated has another part "
    "in the choice than one of weight two"
)


def expected_failures(estimator):
    if getattr(estimator, "map", None) or estimator.kernel not in ("auto", "gaussian(gamma=median)"):
        return {}
    return {f"check_sample_weight_equivalence_on_{kind}_data": CHOOSING for kind in ("dense", "sparse")}


@parametrize_with_checks(
    [
        KernelRegressor(random_state=0),
        KernelRegressor(**FIXED),
        KernelRegressor(**FIXED, pca=0.999),
        KernelClassifier(random_state=0),
        KernelClassifier(**FIXED, calibrate=False),
        KernelCCA(random_state=0),
        KernelCCA(map=RandomFourier(Gaussian(0.1), 16), alpha=0.1, scaling="none", random_state=0),
        KernelPCA(random_state=0),
        KernelPCA("gaussian(gamma=0.1)", n_features=32, random_state=0),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
