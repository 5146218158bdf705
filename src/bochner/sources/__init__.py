"""Where rows come from."""

from bochner.sources.base import CHUNK, Chunk, Source
from bochner.sources.memory import MemorySource
from bochner.sources.scaling import Scaling
from bochner.sources.schema import Asked, Column, Schema

__all__ = ["CHUNK", "Asked", "Chunk", "Column", "MemorySource", "Scaling", "Schema", "Source"]
