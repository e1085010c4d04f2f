"""What moves elements, makes them, or tells of shapes; and control flow."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx

from tests.judges.early.use import Array, CannotJudgeError, Use, meaning


@meaning("Identity")
def identity(_use: Use, x: Array) -> Array:
    """The input."""
    return x


@meaning("Constant")
def constant(use: Use) -> Array:
    """A tensor, which the schema's types keep to floats."""
    return onnx.numpy_helper.to_array(use["value"])


@meaning("Shape")
def shape(_use: Use, x: Array) -> Array:
    """The sizes of all axes."""
    return np.array(x.shape, np.int64)


@meaning("Size")
def size(_use: Use, x: Array) -> Array:
    """The number of elements, as a scalar."""
    return np.array(x.size, np.int64)


@meaning("Reshape", since=(1, 5))
def reshape(use: Use, x: Array, given: Array | None = None) -> Array:
    """0 copies the size of the same axis and one -1 is what is left; the shape is an input from version 5 on."""
    target = use["shape"] if use.since == 1 else given
    use.needs(target is not None, "no shape")
    target = np.asarray(target, np.int64).tolist()
    copied = [x.shape[axis] if dim == 0 and axis < x.ndim else dim for axis, dim in enumerate(target)]
    use.needs(all(dim >= -1 for dim in target) and target.count(-1) <= 1, f"shape {target}")
    use.needs(all(axis < x.ndim for axis, dim in enumerate(target) if dim == 0), f"shape {target} of {x.shape}")
    rest = int(np.prod([dim for dim in copied if dim != -1]))
    if -1 in copied and rest == 0:
        raise CannotJudgeError("what -1 stands for among no elements")
    use.needs(x.size % rest == 0 if -1 in copied else rest == x.size, f"shape {target} of {x.shape}")
    return x.reshape(copied)


@meaning("Transpose")
def transpose(use: Use, x: Array) -> Array:
    """Axes in another order, by default the opposite one."""
    perm = list(range(x.ndim))[::-1] if use["perm"] is None else use["perm"]
    use.needs(sorted(perm) == list(range(x.ndim)), f"perm {perm} of rank {x.ndim}")
    return x.transpose(perm)


@meaning("Squeeze")
def squeeze(use: Use, x: Array) -> Array:
    """Without axes of size 1: those that are named, or all of them."""
    if use["axes"] is None:
        return x.squeeze()
    axes = use.axes(x.ndim)
    use.needs(all(x.shape[axis] == 1 for axis in axes), f"axes {axes} of {x.shape}")
    return x.squeeze(axes)


@meaning("Unsqueeze")
def unsqueeze(use: Use, x: Array) -> Array:
    """With axes of size 1, counted in the output."""
    return np.expand_dims(x, use.axes(x.ndim + len(use["axes"])))


@meaning("Flatten")
def flatten(use: Use, x: Array) -> Array:
    """A matrix; ``axis`` lies between 0 and the rank."""
    axis = use.axis(x.ndim, past=1)
    return x.reshape(int(np.prod(x.shape[:axis])), int(np.prod(x.shape[axis:])))


@meaning("Concat", since=(1, 4))
def concat(use: Use, *values: Array) -> Array:
    """One after the other; only version 1 has a default axis, which is 1."""
    axis = use["axis"] if use["axis"] is not None else 1
    use.needs(0 <= axis < values[0].ndim, f"axis {axis} of rank {values[0].ndim}")
    rest = {value.shape[:axis] + value.shape[axis + 1 :] for value in values}
    use.needs(len(rest) == 1, f"shapes {[value.shape for value in values]}")
    return np.concatenate(values, axis)


@meaning("Split", since=(1, 2))
def split(use: Use, x: Array, given: Array | None = None) -> list[Array]:
    """In parts of given sizes, or in equal ones; version 1 has no default axis, and a second input for the sizes."""
    axis, count = use.axis(x.ndim), len(use.node.output)
    sizes = use["split"] if given is None else given.astype(np.int64).tolist()
    if sizes is None:
        use.needs(x.shape[axis] % count == 0, f"{x.shape[axis]} in {count} equal parts")
        sizes = [x.shape[axis] // count] * count
    use.needs(len(sizes) == count and sum(sizes) == x.shape[axis], f"parts {sizes} of {x.shape[axis]}")
    return np.split(x, np.cumsum(sizes)[:-1], axis)


@meaning("Slice")
def slice_(use: Use, x: Array) -> Array:
    """Between bounds that may count from the end, on axes that may not."""
    starts, ends = use["starts"], use["ends"]
    axes = tuple(range(len(starts))) if use["axes"] is None else use.axes(x.ndim)
    use.needs(len(starts) == len(ends) == len(axes) <= x.ndim, f"{starts}, {ends}, {axes} of rank {x.ndim}")
    parts = [slice(None)] * x.ndim
    for axis, start, end in zip(axes, starts, ends, strict=True):
        parts[axis] = slice(start, end)
    return x[tuple(parts)]


@meaning("Gather")
def gather(use: Use, x: Array, indices: Array) -> Array:
    """By index; the axis may count from the end, the indices may not before version 11."""
    rank = x.ndim
    use.needs(-rank <= use["axis"] < rank, f"axis {use['axis']} of rank {rank}")
    if (indices < 0).any():
        raise CannotJudgeError("a negative index, which runtimes always took and no text allowed")
    use.needs(bool((indices < x.shape[use["axis"]]).all()), "an index out of bounds")
    return np.take(x, indices, use["axis"])


@meaning("Tile")
def tile_one_axis(use: Use, x: Array, tiles: Array, axis: Array) -> Array:
    """Along one axis; both numbers are of the element type of the input."""
    use.needs(tiles.size == axis.size == 1, f"tiles {tiles.shape}, axis {axis.shape}")
    place = int(axis.item())
    use.needs(0 <= place < x.ndim and place == axis.item() and tiles.item() == int(tiles.item()), "odd numbers")
    return np.concatenate([x] * int(tiles.item()), place) if tiles.item() else np.take(x, [], place)


@meaning("Tile", since=(6,))
def tile(use: Use, x: Array, repeats: Array) -> Array:
    """Along every axis: one count for each, no more and no fewer."""
    use.needs(repeats.shape == (x.ndim,), f"repeats {repeats.shape} of rank {x.ndim}")
    return np.tile(x, repeats) if x.ndim else x


@meaning("Pad", since=(1, 2))
def pad(use: Use, x: Array) -> Array:
    """Widths by axis; only from version 2 on may they be negative, which removes."""
    widths = use["paddings" if use.since == 1 else "pads"]
    use.needs(len(widths) == 2 * x.ndim, f"{len(widths)} widths of rank {x.ndim}")
    use.needs(use.since > 1 or min(widths, default=0) >= 0, f"negative widths {widths}")
    use.needs(use["mode"] in ("constant", "reflect", "edge"), f"mode {use['mode']}")
    if not widths:
        return x
    pairs = list(zip(widths[: x.ndim], widths[x.ndim :], strict=True))
    if use["mode"] != "constant" and min(widths, default=0) < 0:
        raise CannotJudgeError("what is reflected where something is removed is not said")
    more = {"constant_values": np.array(use["value"]).astype(x.dtype)} if use["mode"] == "constant" else {}
    wide = np.pad(x, [(max(0, a), max(0, b)) for a, b in pairs], use["mode"], **more)  # type: ignore[call-overload]
    kept = (slice(max(0, -a), dim - max(0, -b)) for dim, (a, b) in zip(wide.shape, pairs, strict=True))
    return wide[tuple(kept)]  # type: ignore[no-any-return]


@meaning("SpaceToDepth", "DepthToSpace")
def rearrange(use: Use, x: Array) -> Array:
    """Blocks of pixels against channels; the only order is that of "DCR"."""
    use.needs(x.ndim == 4, f"rank {x.ndim}")
    n, c, h, w = x.shape
    block = use["blocksize"]
    if use.node.op_type == "DepthToSpace":
        use.needs(c % block**2 == 0, f"{c} channels in blocks of {block}")
        parts = x.reshape(n, block, block, c // block**2, h, w)
        return parts.transpose(0, 3, 4, 1, 5, 2).reshape(n, c // block**2, h * block, w * block)
    use.needs(h % block == 0 and w % block == 0, f"{h} by {w} in blocks of {block}")
    parts = x.reshape(n, c, h // block, block, w // block, block)
    return parts.transpose(0, 3, 5, 1, 2, 4).reshape(n, c * block**2, h // block, w // block)


@meaning("If")
def branch(use: Use, condition: Array) -> list[Any]:
    """One of two bodies."""
    use.needs(condition.size == 1, f"a condition of shape {condition.shape}")
    return use.run_body(use["then_branch" if condition.item() else "else_branch"], [])


@meaning("Loop")
def loop(use: Use, trips: Array | None, condition: Array | None, *carried: Array) -> list[Any]:
    """While the condition holds and trips are left; version 1 carries at least one value."""
    use.needs(bool(carried), "nothing is carried")
    go_on, state, rows = True if condition is None else bool(condition.item()), list(carried), []
    for trip in itertools.count():
        if not go_on or (trips is not None and trip >= trips.item()):
            break
        if trip > 10_000:
            raise CannotJudgeError("an endless loop")
        held, *results = use.run_body(use["body"], [np.array(trip, np.int64), np.array(go_on), *state])
        go_on = condition is None or bool(held.item())
        state = results[: len(carried)]
        rows.append(results[len(carried) :])
    if not rows and len(use.node.output) > len(carried):
        raise CannotJudgeError("the shape of what a loop without trips collects")
    return [*state, *(np.stack(column) for column in zip(*rows, strict=True))]
