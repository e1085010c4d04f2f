"""One step of an optimiser, as ai.onnx.preview.training has it: several tensors at once, grouped by role."""

from __future__ import annotations

from collections.abc import Sequence

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.backend import Array, Backend, HostArray
from entrepot.runtime.kernels.table import shared

_DOMAIN = "ai.onnx.preview.training"


def _by_role(inputs: Sequence[Array], roles: int) -> list[tuple[Array, ...]]:
    """(value, gradient, states...) of each tensor, from all values, then all gradients, then all states."""
    count, rest = divmod(len(inputs), roles)
    if rest:
        raise InputError(f"an optimiser step takes {roles} tensors per parameter, not {len(inputs)} in all")
    return [tuple(inputs[role * count + n] for role in range(roles)) for n in range(count)]


def _regularized(xp: Backend, x: Array, gradient: Array, norm_coefficient: float) -> Array:
    return xp.scalar(norm_coefficient, like=x) * x + gradient


def _by_output(steps: Sequence[tuple[Array, ...]]) -> tuple[Array, ...]:
    return tuple(value for role in zip(*steps, strict=True) for value in role)


@shared("Adagrad", 1, domain=_DOMAIN)
def adagrad(
    xp: Backend,
    R: HostArray,
    T: HostArray,
    *inputs: Array,
    decay_factor: float = 0.0,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
) -> tuple[Array, ...]:
    """Steps shrink with the sum of squared gradients."""
    steps = []
    for x, gradient, squares in _by_role(inputs, 3):
        rate = xp.scalar(float(R.item()) / (1 + int(T.item()) * decay_factor), like=x)
        g = _regularized(xp, x, gradient, norm_coefficient)
        total = squares + g * g
        steps.append((x - rate * g / (xp.sqrt(total) + xp.scalar(epsilon, like=x)), total))
    return _by_output(steps)


@shared("Adam", 1, domain=_DOMAIN)
def adam(
    xp: Backend,
    R: HostArray,
    T: HostArray,
    *inputs: Array,
    alpha: float = 0.9,
    beta: float = 0.999,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
    norm_coefficient_post: float = 0.0,
) -> tuple[Array, ...]:
    """Steps follow a running mean of gradients over the root of a running mean of their squares."""
    rate, count = float(R.item()), int(T.item())
    if count > 0:
        rate *= (1 - beta**count) ** 0.5 / (1 - alpha**count)
    steps = []
    for x, gradient, old_mean, old_square in _by_role(inputs, 4):
        g = _regularized(xp, x, gradient, norm_coefficient)
        mean = xp.scalar(alpha, like=x) * old_mean + xp.scalar(1 - alpha, like=x) * g
        square = xp.scalar(beta, like=x) * old_square + xp.scalar(1 - beta, like=x) * g * g
        y = x - xp.scalar(rate, like=x) * mean / (xp.sqrt(square) + xp.scalar(epsilon, like=x))
        steps.append((y * xp.scalar(1 - norm_coefficient_post, like=x), mean, square))
    return _by_output(steps)


@shared("Momentum", 1, domain=_DOMAIN)
def momentum(
    xp: Backend,
    R: HostArray,
    T: HostArray,
    *inputs: Array,
    alpha: float,
    beta: float,
    mode: str,
    norm_coefficient: float,
) -> tuple[Array, ...]:
    """Steps follow a decaying sum of gradients; Nesterov's looks one step ahead."""
    if mode not in ("standard", "nesterov"):
        raise InputError(f"Momentum has the modes standard and nesterov, not {mode!r}")
    weight = beta if int(T.item()) > 0 else 1.0
    steps = []
    for x, gradient, old_velocity in _by_role(inputs, 3):
        rate, keep = xp.scalar(float(R.item()), like=x), xp.scalar(alpha, like=x)
        g = _regularized(xp, x, gradient, norm_coefficient)
        velocity = keep * old_velocity + xp.scalar(weight, like=x) * g
        steps.append((x - rate * (g + keep * velocity if mode == "nesterov" else velocity), velocity))
    return _by_output(steps)
