"""What has been learnt: from rows to predictions, with everything that happens to a row on the way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bochner.arrays import Float, Float64, Matrix, as_rows, tiles
from bochner.errors import DataError, SolverError
from bochner.features import Drawn
from bochner.solvers import Solution
from bochner.solvers.calibrate import Calibration, for_each_class
from bochner.solvers.losses import LOSSES
from bochner.sources import Scaling, Schema, Source
from bochner.sources.scan import is_table, scan
from bochner.stats import Classes, Numbers, Targets

#: bytes of a tile of features: what is formed of Z at any one time
TILE = 8 << 20


@dataclass(frozen=True)
class Model:
    """f(x) = z(x) @ coef + intercept of scaled rows x, and what its outputs mean.

    ``targets`` says what is predicted, ``loss`` what was minimised; ``calibration`` turns the scores of
    least squares into probabilities.
    """

    schema: Schema
    scaling: Scaling
    drawn: Drawn
    targets: Targets
    solution: Solution
    loss: str = "squared"
    calibration: Calibration | None = None
    dtype: str = "float32"

    def outputs(self, X: Any) -> Float64:
        """f of every row, (rows, outputs), tile by tile: the features of all rows are never there at once."""
        found = [self.solution.decision(Z) for Z in self._features(X)]
        return np.concatenate(found) if found else np.empty((0, self.solution.coef.shape[1]))

    def pieces(self, X: Any) -> Iterator[Matrix]:
        """Rows as the model takes them: of an array, of a table or a source by its schema, in pieces."""
        source = X if isinstance(X, Source) else scan(X) if self.schema.columns and is_table(X) else None
        if source is None:
            yield as_rows(X).values
        else:
            for chunk in source.with_schema(self.schema).settle().chunks():
                yield chunk.X

    def _features(self, X: Any) -> Iterator[Float]:
        """Features of the rows, tile by tile."""
        first = 0
        for values in self.pieces(X):
            yield from self._tiles(values, first)
            first += values.shape[0]

    def _tiles(self, values: Matrix, first: int) -> Iterator[Float]:
        """Features of rows of which ``first`` is the number of the first one."""
        if values.shape[1] != self.drawn.d:
            raise DataError(f"the model was fitted on {self.drawn.d} columns, the rows have {values.shape[1]}")
        size = max(64, TILE // (self.drawn.width * np.dtype(self.dtype).itemsize))
        for part in tiles(values.shape[0], size):
            # Scaled before it is rounded: a large mean would take the digits of float32.
            scaled = self.scaling.apply(values[part]).astype(self.dtype, copy=False)
            try:
                yield self.drawn.laid(scaled)
            except DataError as error:
                raise error.located(first + part.start, self.schema.names) from None

    def spread(self, X: Any, mean: Float64, factor: Float64) -> Float64:
        """‖(z(x) − mean) @ factor‖² of every row, tile by tile."""
        return np.concatenate([np.square((Z - mean) @ factor).sum(axis=1) for Z in self._features(X)])

    def decision(self, X: Any) -> Float64:
        """Scores (calibrated where they are), one for each class or one in all for two; or the predicted numbers."""
        out = self.outputs(X)
        if isinstance(self.targets, Numbers):
            return out[:, 0] if self.targets.flat else out
        if self.calibration is not None:
            out = self.calibration.scores(for_each_class(out))
        if out.shape[1] == 1:
            return out[:, 0]
        return out[:, 1] - out[:, 0] if out.shape[1] == 2 else out

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels or numbers."""
        return self.meant(self.decision(X))

    def meant(self, decision: Float64) -> NDArray[Any]:
        """The labels or numbers that scores stand for."""
        if isinstance(self.targets, Classes):
            codes = (decision > 0.0).astype(int) if decision.ndim == 1 else decision.argmax(axis=1)
            return np.asarray(self.targets.labels[codes])
        return decision

    def probabilities(self, X: Any) -> Float64:
        """One for each class: of the logistic model, or of the calibrated scores of least squares."""
        if not isinstance(self.targets, Classes):
            raise SolverError("a model of numbers has no probabilities; use predict with its standard deviation")
        out = self.outputs(X)
        if self.calibration is not None:
            return self.calibration.probabilities(for_each_class(out))
        return LOSSES[self.loss].probabilities(out)

    def with_solution(self, solution: Solution) -> Model:
        """The same model with other coefficients."""
        return replace(self, solution=solution)
