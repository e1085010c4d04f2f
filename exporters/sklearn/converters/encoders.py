"""Categories as numbers, and labels as categories."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Symbolic, lifted
from entrepot.exporters.sklearn.columns import as_float, each, matrix
from entrepot.exporters.sklearn.encoding import position
from entrepot.exporters.sklearn.table import Results, converts
from entrepot.ir.errors import ConversionError


@converts("sklearn.OneHotEncoder")
def one_hot(model: Any, x: Any) -> Results:
    """A column for each category; rare ones may share one, and one may be left out."""
    parts = [_one_hot(model, at, column) for at, column in enumerate(each(x))]
    return {"transform": np.concatenate(parts, axis=1).astype(model.dtype)}


def _one_hot(model: Any, at: int, column: Symbolic) -> Symbolic:
    found = position(column, model.categories_[at])
    table = _outputs(model, at)
    return lifted(column.build, table).take(np.where(found < 0, np.int64(len(table) - 1), found), 0)


def _outputs(model: Any, at: int) -> Any:
    """What each category becomes, and in the last row what an unknown one does."""
    count = len(model.categories_[at])
    groups = np.arange(count)
    unknown = -1
    if model._infrequent_enabled and model._default_to_infrequent_mappings[at] is not None:
        groups = model._default_to_infrequent_mappings[at]
        if model.handle_unknown in ("infrequent_if_exist", "warn"):
            unknown = groups.max()
    table = np.vstack([np.eye(groups.max() + 1)[groups], np.zeros(groups.max() + 1)])
    table[-1, unknown] = 1.0 if unknown >= 0 else 0.0
    dropped = None if model._drop_idx_after_grouping is None else model._drop_idx_after_grouping[at]
    return table if dropped is None else np.delete(table, dropped, axis=1)


@converts("sklearn.OrdinalEncoder")
def ordinal(model: Any, x: Any) -> Results:
    """The number of a category."""
    columns = [_ordinal(model, at, column) for at, column in enumerate(each(x))]
    return {"transform": np.stack(columns, axis=1)}


def _ordinal(model: Any, at: int, column: Symbolic) -> Symbolic:
    categories = model.categories_[at]
    codes = np.arange(len(categories), dtype=float)
    if model._infrequent_enabled and model._default_to_infrequent_mappings[at] is not None:
        codes[: len(model._default_to_infrequent_mappings[at])] = model._default_to_infrequent_mappings[at]
    if at in model._missing_indices:
        codes[model._missing_indices[at]] = model.encoded_missing_value
    unknown = model.unknown_value if model.handle_unknown == "use_encoded_value" else -1.0
    codes = np.append(codes, np.nan if unknown is None else unknown).astype(model.dtype)
    found = position(column, categories)
    return lifted(column.build, codes).take(np.where(found < 0, np.int64(len(categories)), found), 0)


@converts("sklearn.TargetEncoder")
def target(model: Any, x: Any) -> Results:
    """The mean of the target for each category."""
    columns, classes = each(x), len(model.classes_) if model.target_type_ == "multiclass" else 1
    means = np.atleast_1d(model.target_mean_)
    parts = []
    for at, encodings in enumerate(model.encodings_):
        column = columns[at // classes]
        table = np.append(encodings, means[at % classes])
        found = position(column, model.categories_[at // classes])
        parts.append(lifted(column.build, table).take(np.where(found < 0, np.int64(len(table) - 1), found), 0))
    return {"transform": np.stack(parts, axis=1)}


@converts("sklearn.LabelEncoder")
def label_encoder(model: Any, x: Any) -> Results:
    """The number of a class."""
    return {"transform": position(_labels(x), model.classes_)}


@converts("sklearn.LabelBinarizer")
def label_binarizer(model: Any, x: Any) -> Results:
    """A column for each class, or one if there are two."""
    x = _labels(x)
    if x.ndim == 2:
        raise ConversionError("a LabelBinarizer of several labels at once only copies them", hint="leave it out")
    one = position(x, model.classes_)[:, None] == np.arange(len(model.classes_))
    one = one[:, 1:] if len(model.classes_) == 2 else one
    return {"transform": np.where(one, np.int64(model.pos_label), np.int64(model.neg_label))}


def _labels(x: Any) -> Symbolic:
    x = matrix(x)
    return x[:, 0] if x.ndim == 2 and x.shape[1] == 1 else x


@converts("sklearn.HashingVectorizer", "sklearn.FeatureHasher")
def hashing(model: Any, x: Any) -> Results:
    """Hashes of text are no operator of ONNX."""
    raise ConversionError(
        f"{type(model).__name__} hashes text (MurmurHash3), which ONNX has no operator for: a CountVectorizer or a "
        "TfidfVectorizer has a vocabulary instead"
    )


@converts("sklearn.TfidfTransformer")
def inverse_frequencies(model: Any, x: Any) -> Results:
    """Counts weighed by how rare a term is."""
    x = as_float(x)
    if model.sublinear_tf:
        x = np.where(x > 0, np.log(np.where(x > 0, x, x.dtype.type(1))) + x.dtype.type(1), x)
    x = x * model.idf_.astype(x.dtype) if model.use_idf else x
    if model.norm is None:
        return {"transform": x}
    length = np.abs(x).sum(1, keepdims=True) if model.norm == "l1" else np.sqrt((x * x).sum(1, keepdims=True))
    return {"transform": x / np.where(length == 0, x.dtype.type(1), length)}


@converts("sklearn.SelectorMixin")
def selected(model: Any, x: Any) -> Results:
    """Some of the columns."""
    from entrepot.exporters.sklearn.columns import Columns

    at = np.flatnonzero(model.get_support())
    return {"transform": x.pick(list(at)) if isinstance(x, Columns) else matrix(x)[:, at]}


@converts("sklearn.RFE")
def elimination(model: Any, x: Any) -> Results:
    """Some of the columns, and the estimator that was fitted to them."""
    from entrepot.exporters.sklearn.table import results

    found = selected(model, x)
    inner = results(model.estimator_, found["transform"])
    return {**{name: value for name, value in inner.items() if name != "transform"}, **found}
