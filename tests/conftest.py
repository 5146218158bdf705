"""What every test run shares."""

import os

# One thread for each of pytest's workers; BLAS reads these when NumPy is imported.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
