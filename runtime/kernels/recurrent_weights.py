"""Which shapes the weights and states of a recurrence have."""

from __future__ import annotations

from collections.abc import Sequence

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.axes import is_shape


def check_weights(gates: int, hidden_size: int | None, *given: Sequence[int] | None) -> None:
    """Refuse weights that do not go together, by the shapes of W, R, B and P: ``gates`` matrices in every direction.

    Raises:
        InputError: They do not, or not with ``hidden_size``.
    """
    w, r = given[:2]
    assert w is not None
    assert r is not None
    directions, hidden = r[0], r[-1]
    wanted = ((gates * hidden, w[-1]), (gates * hidden, hidden), (2 * gates * hidden,), (3 * hidden,))
    for name, shape, sizes in zip("WRBP", given, wanted, strict=False):
        if shape is not None and not is_shape(shape, (directions, *sizes)):
            raise InputError(f"{name} of shape {tuple(shape)} does not go with R of shape {tuple(r)}")
    if hidden_size is not None and not is_shape((hidden_size,), (hidden,)):
        raise InputError(f"hidden_size={hidden_size} disagrees with R of shape {tuple(r)}")


def check_state(shape: Sequence[int], batch: int, hidden: int) -> None:
    """Refuse an initial state that is not one for each sample; it would be repeated for all.

    Raises:
        InputError: It is not.
    """
    if not is_shape(shape[1:], (batch, hidden)):
        raise InputError(f"an initial state of shape {tuple(shape)} for {batch} samples of {hidden} units")
