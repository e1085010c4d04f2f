"""Functions that a file has beside its modules, where torch has no word; they are copied as they are."""

# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code="var-annotated"

from __future__ import annotations

import itertools

import torch
from torch import nn


def quotient(x, y):
    """Integers divided and rounded to 0; the minimum by -1 wraps around, and anything by 0 is 0."""
    rounded = torch.div(x, divisor(y), rounding_mode="trunc")
    return torch.where(y == -1, -x, torch.where(y == 0, torch.zeros_like(rounded), rounded))


def quantized(x, scale, zero, dtype):
    """The nearest steps of a type, from the one that stands for zero."""
    ends = torch.iinfo(dtype)
    steps = torch.round(x / scale) + zero
    return torch.clamp(steps, ends.min, ends.max).to(dtype)


def divisor(y):
    """A divisor of integers with 1 for -1, by which the minimum must not be divided, and for 0; nothing remains."""
    return torch.where((y == -1) | (y == 0), torch.ones_like(y), y)


def reshaped(x, shape, allowzero=False):
    """X in a shape in which 0 means as it was."""
    return x.reshape(shape if allowzero else [x.shape[at] if size == 0 else size for at, size in enumerate(shape)])


def spaced(start, end, step, **made):
    """Numbers from start to end, none where steps lead away from it; in a graph that is captured, they must not."""
    if not torch.compiler.is_compiling() and (end - start) * step < 0:
        end = start
    return torch.arange(start, end, step, **made)


def from_front(indices, size):
    """Indices below 0 count from the end."""
    return torch.where(indices < 0, indices + size, indices).long()


def same(x, kernel, strides, dilations, lower=False, value=0.0):
    """X with as much around it as a window needs that begins at every step; what is odd comes after it."""
    pads = []
    for size, width, step, hole in zip(x.shape[:1:-1], kernel[::-1], strides[::-1], dilations[::-1], strict=True):
        missing = torch.sym_max((-(-size // step) - 1) * step + hole * (width - 1) + 1 - size, 0)
        pads += [missing - missing // 2, missing // 2] if lower else [missing // 2, missing - missing // 2]
    return torch.nn.functional.pad(x, pads, value=value)


def chosen(condition, yes, no, *operands):
    """One of two functions of the operands; both of them in a graph that is captured."""
    if torch.compiler.is_compiling():
        return torch.cond(condition.reshape(()), yes, no, operands)
    return yes(*operands) if condition else no(*operands)


def repeated(turn, count, going_on, *carried):
    """What the turns of a loop leave behind; in a graph that is captured, they stay one loop.

    There are no more than ``count`` turns unless it is None, and none after one that says not to go on.
    """
    if torch.compiler.is_compiling():
        return captured_loop(turn, count, going_on, *carried)
    trip = 0
    while going_on and (count is None or trip < count):
        going_on, *carried = turn(torch.tensor(trip), *carried)
        trip += 1
    return carried


def captured_loop(turn, count, going_on, *carried):
    """A loop as an operator, whose results are never its operands."""

    def unfinished(trip, going_on, *carried):
        return going_on.clone() if count is None else going_on & (trip < count)

    def following(trip, going_on, *carried):
        going_on, *carried = turn(trip, *carried)
        fresh = [each.clone() for each in carried]
        return trip + 1, flag(going_on), *fresh

    def flag(going_on):
        if isinstance(going_on, torch.Tensor):
            return going_on.reshape(()).clone()
        # a constant could not be within a loop
        return torch.full((), going_on, dtype=torch.bool)

    fresh = [each.clone() for each in carried]
    start = (torch.zeros((), dtype=torch.int64), flag(going_on), *fresh)
    if torch.compiler.is_compiling() and not torch.compiler.is_dynamo_compiling():
        torch.compiler.reset()  # or an export takes loops from an earlier one, with the sizes that were fixed there
    return torch.while_loop(unfinished, following, start)[2:]


def collected(turn, count, going_on, carried, kinds):
    """What turns leave behind, at most ``count`` unless it is None, and what they make, along a new axis."""
    if torch.compiler.is_compiling():
        return captured_collection(turn, count, going_on, carried)
    made, trip = [[] for _ in kinds], 0
    while going_on and (count is None or trip < count):
        going_on, *results = turn(torch.tensor(trip), *carried)
        carried, trip = results[: len(carried)], trip + 1
        for items, item in zip(made, results[len(carried) :], strict=True):
            items.append(item)
    return *carried, *(stack(items, 0, kind) for items, kind in zip(made, kinds, strict=True))


def captured_count(turn, going_on, carried):
    """How many turns there are, which a loop of its own finds out."""

    def following(trip, *values):
        going_on, *results = turn(trip, *values[:-1])
        return going_on, *results[: len(carried)], values[-1] + 1

    return captured_loop(following, None, going_on, *carried, torch.zeros((), dtype=torch.int64))[-1]


def captured_collection(turn, count, going_on, carried):
    """Such turns as an operator, which writes into tensors with room for all of them; what is left over is cut off."""
    states = len(carried)
    if count is None:
        count = captured_count(turn, going_on, carried)
    most = count.item() if isinstance(count, torch.Tensor) else count
    most = torch.sym_max(most, 0)
    samples = turn(torch.zeros((), dtype=torch.int64), *carried)[1 + states :]
    rooms = [torch.zeros((most, *each.shape), dtype=each.dtype, device=each.device) for each in samples]

    def following(trip, *values):
        going_on, *results = turn(trip, *values[:states])
        place = trip.reshape(1)
        made = zip(values[states + 1 :], results[states:], strict=True)
        filled = [room.index_copy(0, place.to(room.device), each.unsqueeze(0)) for room, each in made]
        return going_on, *results[:states], values[states] + 1, *filled

    left = captured_loop(following, count, going_on, *carried, torch.zeros((), dtype=torch.int64), *rooms)
    turns = left[states].item()
    torch._check(turns >= 0)  # noqa: SLF001 - as torch's documentation asks for it
    torch._check(turns <= most)  # noqa: SLF001
    return *left[:states], *(room.narrow(0, 0, turns) for room in left[states + 1 :])


def scanned(turn, carried, rows, kinds):
    """What turns over the rows of tensors leave behind, and what they make, put together along a new axis."""
    if torch.compiler.is_compiling():
        return captured_scan(turn, carried, rows)
    made = [[] for _ in kinds]
    for row in zip(*(each.unbind() for each in rows), strict=True):
        results = turn(*carried, *row)
        carried = results[: len(carried)]
        for items, item in zip(made, results[len(carried) :], strict=True):
            items.append(item)
    return *carried, *(stack(items, 0, kind) for items, kind in zip(made, kinds, strict=True))


def captured_scan(turn, carried, rows):
    """Such turns as an operator, whose results are never its operands, nor twice the same."""
    from torch._higher_order_ops.scan import scan  # torch 2.4 has none, and runs the rest

    def step(carried, rows):
        results = [each.clone() for each in turn(*carried[1:], *rows)]
        return [carried[0].clone(), *results[: len(carried) - 1]], results[len(carried) - 1 :]

    start = [torch.zeros(()), *(each.clone() for each in carried)]  # a scan must carry something
    last, made = scan(step, start, rows)
    return *last[1:], *made


def packed(layer, x, lengths, states=None):
    """A recurrent layer over rows of their own lengths: zeros behind the end of each, and its state as it was there."""
    if torch.compiler.is_compiling():
        return captured_rows(layer, x, lengths, states)
    some = (lengths > 0).unsqueeze(-1).to(x.device)  # torch packs no empty row
    given = nn.utils.rnn.pack_padded_sequence(x, lengths.clamp(min=1).cpu(), enforce_sorted=False)
    steps, last = layer(given, states)
    steps, _ = nn.utils.rnn.pad_packed_sequence(steps, total_length=x.shape[0])
    several = isinstance(last, tuple)
    last, first = (last, states) if several else ((last,), None if states is None else (states,))
    first = first or [torch.zeros_like(each) for each in last]
    last = tuple(torch.where(some, each, before) for each, before in zip(last, first, strict=True))
    return torch.where(some, steps, 0.0), last if several else last[0]


def captured_rows(layer, x, lengths, states):
    """Such a layer in a graph that is captured: step by step, of which those behind the end of a row change nothing."""
    cell = getattr(torch, f"{layer.mode.lower()}_cell")
    several, directions = layer.mode == "LSTM", 2 if layer.bidirectional else 1
    if states is None:
        zeros = x.new_zeros(layer.num_layers * directions, x.shape[1], layer.hidden_size)
        states = (zeros, zeros)
    states = states if isinstance(states, tuple) else (states,)
    lasts, sides = [], []
    for number in range(layer.num_layers * directions):
        suffix = f"_l{number // directions}{'_reverse' if number % directions else ''}"
        names = ["weight_ih", "weight_hh", *(["bias_ih", "bias_hh"] if layer.bias else [])]
        weights = [getattr(layer, f"{name}{suffix}") for name in names]

        def turn(*values, weights=weights):
            *carried, row, place = values
            new = cell(row, tuple(carried) if several else carried[0], *weights)
            new = new if several else (new,)
            inside = (place < lengths).unsqueeze(-1)
            kept = [torch.where(inside, after, before) for after, before in zip(new, carried, strict=True)]
            return *kept, torch.where(inside, new[0], 0.0)

        rows = [x, torch.arange(x.shape[0], device=lengths.device)]
        rows = [row.flip(0) for row in rows] if number % directions else rows
        *last, made = captured_scan(turn, [state[number] for state in states[: 2 if several else 1]], rows)
        lasts.append(last)
        sides.append(made.flip(0) if number % directions else made)
        if len(sides) == directions:
            x, sides = torch.cat(sides, -1), []
    last = tuple(torch.stack(each) for each in zip(*lasts, strict=True))
    return x, last if several else last[0]


def opaque(kinds):
    """A kernel that looks at the values of tensors, which in a graph that is captured is one operator.

    There its results have the element types and sizes that ``kinds`` tells: those of operands, or fixed ones; sizes
    that are None are open.
    """

    def operator(kernel):
        name = kernel.__name__
        if not hasattr(torch.ops.entrepot_imported, name):  # another model may have the same one
            define_operator(kernel, kinds)
        captured = getattr(torch.ops.entrepot_imported, name).default

        def run(*operands):
            return captured(*operands) if torch.compiler.is_compiling() else kernel(*operands)

        return run

    return operator


def define_operator(kernel, kinds):
    """A kernel as an operator of torch, and its gradient as another one."""

    def computed(*operands):
        results = zip(kinds, parts(kernel(*operands)), strict=True)
        return several(apart(operands, [None if kind is None else each for kind, each in results]))

    def fake(*operands):
        def size(dim):
            if isinstance(dim, tuple):
                return operands[dim[0]].shape[dim[1]]
            return torch.library.get_ctx().new_dynamic_size() if dim is None else dim

        def result(kind, shape):
            dtype = operands[kind].dtype if isinstance(kind, int) else kind
            return operands[0].new_empty([size(dim) for dim in shape], dtype=dtype)

        return several([operands[0].new_empty(0) if kind is None else result(*kind) for kind in kinds])

    def pulled(*given):
        grads, operands = given[: len(kinds)], given[len(kinds) :]
        return several(apart(given, in_thread(gradients, kernel, grads, operands)))

    def fake_pulled(*given):
        return several([x.new_empty(x.shape if x.is_floating_point() else 0) for x in given[len(kinds) :]])

    def kept(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    def pull(ctx, *grads):
        given = ctx.saved_tensors
        made = parts(backward(*(given[0].new_empty(0) if grad is None else grad for grad in grads), *given))
        return tuple(grad if x.is_floating_point() else None for x, grad in zip(given, made, strict=True))

    count = kernel.__code__.co_argcount
    name = f"entrepot_imported::{kernel.__name__}"
    forward = torch.library.custom_op(name, computed, mutates_args=(), schema=signature(count, len(kinds)))
    forward.register_fake(fake)
    backward = signature(len(kinds) + count, count)
    backward = torch.library.custom_op(f"{name}_backward", pulled, mutates_args=(), schema=backward)
    backward.register_fake(fake_pulled)
    forward.register_autograd(pull, setup_context=kept)


def gradients(kernel, grads, operands):
    """For each operand its gradient, from those of a kernel's results; empty for integers."""
    leaves = [x.detach().requires_grad_(x.is_floating_point()) for x in operands]
    results = zip(parts(kernel(*leaves)), grads, strict=True)
    pairs = [(y, grad) for y, grad in results if grad.numel() and y.requires_grad]
    wanted = [x for x in leaves if x.requires_grad]
    found = iter(
        torch.autograd.grad([y for y, _ in pairs], wanted, [grad for _, grad in pairs], allow_unused=True)
        if pairs
        else [None] * len(wanted)
    )
    made = [next(found) if x.requires_grad else x.new_empty(0) for x in leaves]
    return [torch.zeros_like(x) if grad is None else grad for x, grad in zip(leaves, made, strict=True)]


def in_thread(function, *given):
    """What a function returns on another thread: within an operator, torch records no gradients."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *given).result()


def signature(taken, made):
    """An operator's, as torch writes it."""
    given = ", ".join(f"Tensor x{at}" for at in range(taken))
    return f"({given}) -> ({', '.join(['Tensor'] * made)})"


def parts(results):
    """The results of a kernel."""
    return list(results) if isinstance(results, tuple | list) else [results]


def several(results):
    """Results as an operator returns them."""
    return results[0] if len(results) == 1 else tuple(results)


def apart(operands, results):
    """Results that share no memory with operands, nor with each other, as torch takes it for granted."""
    places = {each.untyped_storage().data_ptr() for each in operands}
    made = []
    for each in results:
        result = operands[0].new_empty(0) if each is None else each.detach()
        shared = result.untyped_storage().data_ptr() in places
        made.append(result.clone(memory_format=torch.contiguous_format) if shared else result.contiguous())
        places.add(made[-1].untyped_storage().data_ptr())
    return made


def first(results):
    """The first of a kernel's results."""
    return results[0] if isinstance(results, tuple) else results


def on_host(x):
    """A tensor's values, where a size or an axis depends on them."""
    return x.numpy(force=True)


def truth(condition):
    """A condition of one element."""
    return bool(condition)


def number(trip):
    """The number of a turn, as a tensor."""
    return torch.tensor(trip)


def trips(count):
    """The turns of a loop; without a count only its condition ends it."""
    return itertools.count() if count is None else range(int(count))


def length(*pairs):
    """The common size of tensors along their axes: x, axis, y, axis."""
    sizes = {x.shape[axis] for x, axis in zip(pairs[::2], pairs[1::2], strict=True)}
    if len(sizes) != 1:
        raise ValueError(f"scanned inputs have different lengths: {sorted(sizes)}")
    return sizes.pop()


def pick(x, index, axis):
    """One slice along an axis."""
    return x.select(axis, index) if isinstance(x, torch.Tensor) else x.take([index], axis).squeeze(axis)


def stack(items, axis, kind):
    """Slices along a new axis; without any, an empty tensor of that type and shape."""
    if items and isinstance(items[0], torch.Tensor):
        return torch.stack(items, axis)
    dtype, shape = kind
    shape = (*shape[: axis % (len(shape) + 1)], 0, *shape[axis % (len(shape) + 1) :])
    if isinstance(dtype, torch.dtype):
        return torch.zeros(shape, dtype=dtype)
    from numpy import stack, zeros  # of element types that torch lacks

    return stack(items, axis) if items else zeros(shape, dtype)


def from_host(results, device=None):
    """Arrays as tensors, but for those of element types that torch lacks, and for maps."""
    if isinstance(results, tuple | list):
        return type(results)(from_host(result, device) for result in results)
    if isinstance(results, dict):
        return results
    try:
        return torch.as_tensor(results, device=device)
    except TypeError:
        return results


def top(x, count, dim, largest):
    """The largest or smallest elements in order, and where they are; of equal ones, those that come first."""
    values, places = torch.sort(x, dim=dim, descending=largest, stable=True)
    return values.narrow(dim, 0, count), places.narrow(dim, 0, count)
