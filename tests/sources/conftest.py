"""The writers of tables are a module of this folder that tests import by name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
