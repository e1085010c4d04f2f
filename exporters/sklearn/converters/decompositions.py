"""Tables as products of smaller ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Symbolic, lifted
from entrepot.exporters.sklearn.blocks import sigmoid
from entrepot.exporters.sklearn.columns import as_float
from entrepot.exporters.sklearn.loops import repeated
from entrepot.exporters.sklearn.table import Results, converts
from entrepot.ir.errors import ConversionError


def _log_likelihood(centred: Symbolic, precision: Any) -> Symbolic:
    _, logdet = np.linalg.slogdet(precision)
    features = len(precision)
    return -0.5 * (centred * (centred @ precision)).sum(1) - 0.5 * (features * np.log(2 * np.pi) - logdet)


@converts("sklearn._BasePCA")
def principal(model: Any, x: Any) -> Results:
    """Along the directions in which data varies most."""
    x = as_float(x)
    turned = x @ model.components_.T - model.mean_ @ model.components_.T
    if model.whiten:
        scale = np.sqrt(model.explained_variance_)
        turned = turned / np.maximum(scale, np.finfo(scale.dtype).eps)
    if not hasattr(model, "score_samples"):
        return {"transform": turned}
    return {"transform": turned, "score_samples": _log_likelihood(x - model.mean_, model.get_precision())}


@converts("sklearn.TruncatedSVD", "sklearn.NeighborhoodComponentsAnalysis", "sklearn.BaseRandomProjection")
def projection(model: Any, x: Any) -> Results:
    """Onto some directions."""
    directions = model.components_
    directions = directions.toarray() if hasattr(directions, "toarray") else directions
    return {"transform": as_float(x) @ directions.T}


@converts("sklearn.FastICA")
def independent(model: Any, x: Any) -> Results:
    """Onto directions that are independent."""
    x = as_float(x)
    return {"transform": (x - model.mean_ if model.whiten else x) @ model.components_.T}


@converts("sklearn.FactorAnalysis")
def factors(model: Any, x: Any) -> Results:
    """The expected factors, given noise of each column."""
    centred = as_float(x) - model.mean_
    weighted = model.components_ / model.noise_variance_
    spread = np.linalg.inv(np.eye(len(model.components_)) + weighted @ model.components_.T)
    likelihood = _log_likelihood(centred, model.get_precision())
    return {"transform": centred @ weighted.T @ spread, "score_samples": likelihood}


@converts("sklearn._BaseSparsePCA")
def sparse_principal(model: Any, x: Any) -> Results:
    """The ridge regression on sparse directions."""
    c = model.components_
    solved = np.linalg.solve(c @ c.T + model.ridge_alpha * np.eye(len(c)), c)
    return {"transform": (as_float(x) - model.mean_) @ solved.T}


@converts("sklearn.BernoulliRBM")
def boltzmann(model: Any, x: Any) -> Results:
    """How probable hidden units are."""
    return {"transform": sigmoid(as_float(x) @ model.components_.T + model.intercept_hidden_)}


@converts("sklearn.NMF")
def non_negative(model: Any, x: Any) -> Results:
    """Descent by one component after the other, which ends when all rows together hardly change any more."""
    x = as_float(x)
    h = np.asarray(model.components_, x.dtype)
    l1_w, _, l2_w, _ = model._compute_regularization(np.zeros((1, h.shape[1])))
    if model.solver != "cd":
        raise ConversionError("an NMF by solver='mu' cannot be written", hint="fit it with solver='cd', the default")
    target, gram = x @ h.T - x.dtype.type(l1_w), h @ h.T + l2_w * np.eye(len(h), dtype=h.dtype)
    start = target * x.dtype.type(0)
    first = (target[0, 0] * x.dtype.type(0)).reshape(())
    tolerance = x.dtype.type(model.tol)

    def step(w: Symbolic, begun: Symbolic) -> tuple[list[Symbolic], Symbolic]:
        columns, moved = [w[:, t] for t in range(len(h))], first * 0
        for t in range(len(h)):
            slope = -target[:, t]
            for r in range(len(h)):
                slope = slope + columns[r] * gram[t, r]
            projected = np.where(columns[t] == 0, np.minimum(slope, 0.0), slope)
            moved = moved + np.abs(projected).sum()
            if gram[t, t] != 0:
                columns[t] = np.maximum(columns[t] - slope / gram[t, t], 0.0)
        begun = np.where(begun == 0, moved, begun)
        return [np.stack(columns, axis=1), begun], (moved > tolerance * begun) & (begun != 0)

    return {"transform": repeated(model.max_iter, [start, first], step)[0]}


@converts("sklearn.LatentDirichletAllocation")
def topics(model: Any, x: Any) -> Results:
    """Shares of topics, by an iteration that stops for each row by itself."""
    x, words = as_float(x), model.exp_dirichlet_component_
    kind, eps = x.dtype.type, np.finfo(x.dtype).eps
    words = words.astype(x.dtype)
    start = x.rows(np.ones(len(words), x.dtype))
    is_open = x.rows(np.ones(1, bool))

    def step(shares: Symbolic, going: Symbolic) -> tuple[list[Symbolic], Symbolic]:
        grown = np.exp(_digamma(shares) - _digamma(shares.sum(1, keepdims=True)))
        ratio = x / (grown @ words + eps)
        new = grown * (ratio @ words.T) + kind(model.doc_topic_prior_)
        moved = np.abs(new - shares).mean(1, keepdims=True) >= kind(model.mean_change_tol)
        return [np.where(going, new, shares), going & moved], (going & moved).any()

    shares = repeated(model.max_doc_update_iter, [start, is_open], step)[0]
    return {"transform": shares / shares.sum(1, keepdims=True)}


def _digamma(x: Symbolic) -> Symbolic:
    """As scikit-learn's own: six steps up, then its asymptotic series."""
    total: Any = 0.0
    tiny = x <= 1e-6
    up = np.where(tiny, x.dtype.type(1), x)
    for _ in range(6):
        below = up < 6
        total = total - np.where(below, 1.0 / up, 0.0)
        up = up + below.astype(x.dtype)
    r = 1.0 / up
    square = r * r
    series = np.log(up) - 0.5 * r - square * (1 / 12 - square * (1 / 120 - square * (1 / 252)))
    return np.where(tiny, -np.euler_gamma - 1.0 / np.where(x == 0, 1.0, x), total + series)


@converts("sklearn._BaseSparseCoding")
def sparse_coding(model: Any, x: Any) -> Results:
    """Few atoms whose sum is like a row."""
    x = as_float(x)
    atoms = np.asarray(getattr(model, "components_", getattr(model, "dictionary", None)), x.dtype)
    inherited = getattr(model, "alpha", None) if model.transform_alpha is None else model.transform_alpha
    alpha = 1.0 if inherited is None else inherited
    match model.transform_algorithm:
        case "threshold":
            likeness = x @ atoms.T
            code = np.sign(likeness) * np.maximum(np.abs(likeness) - alpha, 0.0)
            code = np.maximum(code, 0.0) if model.positive_code else code
        case "omp":
            most = model.transform_n_nonzero_coefs
            count = min(max(x.shape[1] // 10, 1), len(atoms)) if most is None else most
            code = _pursued(x, atoms, count)
        case other:
            raise ConversionError(
                f"transform_algorithm='{other}' cannot be written",
                hint="use 'threshold' or 'omp'",
            )
    return {
        "transform": np.concatenate([np.maximum(code, 0.0), -np.minimum(code, 0.0)], 1) if model.split_sign else code
    }


def _pursued(x: Symbolic, atoms: Any, count: int) -> Symbolic:
    """Orthogonal matching pursuit: the atom most like what is left, and the best sum of all so far."""
    from entrepot.exporters.sklearn.converters.manifolds import solved

    chosen: list[Symbolic] = []
    target, gram = x @ atoms.T, lifted(x.build, atoms @ atoms.T)
    left, code = target, target * 0.0
    for _ in range(count):
        fresh = np.abs(left)
        for known in chosen:
            fresh = np.where(known[:, None] == np.arange(len(atoms)), -1.0, fresh)
        chosen.append(fresh.argmax(1))
        at = np.stack(chosen, axis=1)
        inner = gram.take(at, 0)  # rows of the chosen atoms
        one = (at[:, :, None] == np.arange(len(atoms))).astype(x.dtype)
        weights = solved(inner @ one.transpose(0, 2, 1), (one * target[:, None, :]).sum(2))
        code = (weights[:, :, None] * one).sum(1)
        left = target - code @ gram
    return code


@converts("sklearn.MiniBatchNMF")
def multiplied(model: Any, x: Any) -> Results:
    """Multiplicative updates, which end when all rows together hardly change any more."""
    x = as_float(x)
    h, kind = np.asarray(model.components_, x.dtype), x.dtype.type
    if model._beta_loss != 2:
        raise ConversionError("a MiniBatchNMF of another loss cannot be written", hint="beta_loss='frobenius'")
    l1_w, _, l2_w, _ = model._compute_regularization(np.zeros((1, h.shape[1])))
    target, gram = x @ h.T, h @ h.T
    start = x.rows(np.ones(len(h), x.dtype)) * np.sqrt(x.mean() / kind(len(h)))

    def step(w: Symbolic) -> tuple[list[Symbolic], Symbolic]:
        below = w @ gram + kind(l1_w) + w * kind(l2_w)
        new = w * (target / np.where(below == 0, kind(np.finfo(np.float32).eps), below)) ** kind(model._gamma)
        change = np.sqrt(((new - w) * (new - w)).sum()) / np.sqrt((new * new).sum())
        return [new], change > kind(model.tol) if model.tol > 0 else change >= 0

    return {"transform": repeated(model._transform_max_iter, [start], step)[0]}
