"""Who sweeps the data: one verb, ``sweep``, for every statistic."""

from bochner.run.flow import Flow
from bochner.run.journal import Journal
from bochner.run.local import Local, Progress
from bochner.run.meter import Meter

__all__ = ["Flow", "Journal", "Local", "Meter", "Progress"]
