"""Files that boosters write of themselves. They are data, read by the library that wrote them; pickles are not."""

from __future__ import annotations

import importlib
import os
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from entrepot.exporters.sklearn.upstream import raised
from entrepot.ir.errors import InputError, MissingDependencyError, ModelFormatError
from entrepot.ir.io.foreign import CATBOOST, LIGHTGBM, XGBOOST, Foreign, recognised


def read(path: str | os.PathLike[str]) -> Any:
    """The booster in a file: XGBoost's (JSON or UBJSON), LightGBM's (text), CatBoost's (its own format, or JSON).

    Raises:
        InputError: It is another file.
        MissingDependencyError: The library is not installed.
        ModelFormatError: The library cannot read it.
    """
    path = Path(path)
    name, load = _LOADERS.get(recognised(path), ("", None))
    if load is None:
        raise InputError(
            f"'{path}' is no file of a booster", hint="give a fitted estimator, with some rows of its data"
        )
    try:
        library = importlib.import_module(name)
    except ModuleNotFoundError as error:
        extra = "catboost" if name == "catboost" else "sklearn"
        raise MissingDependencyError(
            f"'{name}' is needed to read '{path}'", hint=f"pip install 'entrepot[{extra}]'"
        ) from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what XGBoost logs of a file that it then refuses
            return load(library, str(path))
    except raised() as error:
        first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise ModelFormatError(f"{name} {library.__version__} cannot read it: {first}", path=path) from error


def _of_lightgbm(library: ModuleType, path: str) -> Any:
    """Trees one after the other: reading them by their sizes, LightGBM ends the process over a damaged one."""
    text = Path(path).read_text("utf-8")
    sizes = re.search(r"^tree_sizes=(.*)\n", text, re.MULTILINE)
    trees = text.split("\nTree=")[1:]
    if "\nend of trees" not in text or (sizes and len(sizes[1].split()) != len(trees)):
        raise ValueError("it is cut off: trees are missing")
    for at, tree in enumerate(trees):
        _check_children(at, dict(re.findall(r"^(\w+)=(.*)$", tree, re.MULTILINE)))
    return library.Booster(model_str=text.replace(sizes[0], "") if sizes else text)


def _check_children(at: int, tree: dict[str, str]) -> None:
    """A leaf is a negative number, and a node is behind the one that it is a child of."""
    leaves = int(tree.get("num_leaves", 0))
    for side in ("left_child", "right_child"):
        for node, child in enumerate(int(each) for each in tree.get(side, "").split()):
            if not (-leaves <= child < 0 or node < child < leaves - 1):
                raise ValueError(f"node {node} of tree {at} has no child {child}")


def _of_catboost(library: ModuleType, path: str) -> Any:
    with open(path, "rb") as file:
        kind = "json" if file.read(1) == b"{" else "cbm"
    return library.CatBoost().load_model(path, format=kind)


_LOADERS: dict[Foreign | None, tuple[str, Callable[[ModuleType, str], Any]]] = {
    XGBOOST: ("xgboost", lambda library, path: library.Booster(model_file=path)),
    LIGHTGBM: ("lightgbm", _of_lightgbm),
    CATBOOST: ("catboost", _of_catboost),
}
