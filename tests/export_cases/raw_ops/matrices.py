"""Systems of equations, factors and roots of matrices."""

from __future__ import annotations

import itertools

import numpy as np

from tests.export_cases.raw_ops.case import add, normal

for kind, tolerance in ((np.float32, 1e-3), (np.float64, 1e-8)):
    for rest in ((), (2,)):
        bands = normal(*rest, 3, 5, dtype=kind)
        bands[..., 1, :] += 4
        add("TridiagonalSolve", tolerance=tolerance, diagonals=bands, rhs=normal(*rest, 5, 2, dtype=kind))
        for lower, adjoint in itertools.product((True, False), (True, False)):
            bands = normal(*rest, 3, 5, dtype=kind)
            bands[..., 0 if lower else -1, :] += 4
            add(
                "BandedTriangularSolve", {"lower": lower, "adjoint": adjoint}, tolerance=tolerance, closed="matrix",
                matrix=bands, rhs=normal(*rest, 5, 2, dtype=kind),
            )  # fmt: skip
        square = normal(*rest, 4, 4, dtype=kind)
        positive = square @ np.swapaxes(square, -1, -2) + np.eye(4, dtype=kind)
        add("CholeskyGrad", tolerance=tolerance, l=np.linalg.cholesky(positive), grad=normal(*rest, 4, 4, dtype=kind))
        add("MatrixSquareRoot", tolerance=tolerance, input=positive)
        add("MatrixSquareRoot", tolerance=tolerance, input=(square + 5 * np.eye(4)).astype(kind))
        for shape, fast, weight in itertools.product(((5, 3), (3, 5), (4, 4)), (True, False), (0.0, 0.3)):
            add(
                "MatrixSolveLs", {"fast": fast}, tolerance=10 * tolerance, closed="matrix",
                matrix=normal(*rest, *shape, dtype=kind), rhs=normal(*rest, shape[0], 2, dtype=kind),
                l2_regularizer=np.array(weight),
            )  # fmt: skip
