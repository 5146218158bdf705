"""The laws are a module of this folder that tests import by name."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("feature_laws", "broken_maps")
