"""What is kept of rows that have gone by: statistics that update, merge and subtract."""

from bochner.stats.base import Batch, Statistic, Sweep
from bochner.stats.blocks import BlockMoments
from bochner.stats.folds import Folds
from bochner.stats.moments import Moments, Part
from bochner.stats.targets import Classes, Numbers, Targets, learn_targets

__all__ = [
    "Batch",
    "BlockMoments",
    "Classes",
    "Folds",
    "Moments",
    "Numbers",
    "Part",
    "Statistic",
    "Sweep",
    "Targets",
    "learn_targets",
]
