"""The corpora that exports are tried on.

``modules`` holds what users write by hand, one file for each thing that makes exports fail; ``architectures`` builds
every architecture of transformers small, ``calls`` has some of them called in less usual ways; ``composed`` puts two
steps together in many ways; ``sklearn`` fits every estimator; ``jax`` has primitives, functions, layers and models of
JAX, ``exported`` what ``jax.export`` makes of them; ``raw_ops`` has the operators of TensorFlow, ``tensorflow``
functions and modules of it, ``files`` what it saves; ``keras`` has every class of layers of Keras, ``applications`` its
networks. Names of models occur here and nowhere in the library.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import warnings
from collections.abc import Callable
from typing import Any

from tests.export_cases import modules
from tests.export_cases.case import CASES, Case

CORPORA = (
    "modules",
    "architectures",
    "calls",
    "composed",
    "sklearn",
    "jax",
    "exported",
    "raw_ops",
    "tensorflow",
    "files",
    "keras",
    "applications",
)
PACKAGES = "packages"
"""The architectures once more, to be made packages: all but those that are the same models in other calls."""
_SAME = ("causal-lm-past", "causal-lm-step")
ROUND_TRIPS = "round_trips"
"""The hand-written modules once more, to become modules again, and from these a second file."""


_JUDGES = {
    "sklearn": "tests.sweeps.estimators",
    "jax": "tests.sweeps.exports_of_jax",
    "exported": "tests.sweeps.exports_of_jax",
    "raw_ops": "tests.sweeps.raw_ops",
    "tensorflow": "tests.sweeps.exports_of_tensorflow",
    "files": "tests.sweeps.exports_of_tensorflow",
    "keras": "tests.sweeps.exports_of_keras",
    "applications": "tests.sweeps.exports_of_keras",
    PACKAGES: "tests.sweeps.packages",
    ROUND_TRIPS: "tests.sweeps.round_trips",
}
"""Who judges a corpus that is none of torch's."""
_CATALOGUES = {
    "calls": "tests.export_cases.calls",
    "composed": "tests.export_cases.composed",
    "raw_ops": "tests.export_cases.raw_ops",
    "tensorflow": "tests.export_cases.tensorflow",
    "files": "tests.export_cases.files",
    "sklearn": "tests.export_cases.sklearn",
    "jax": "tests.export_cases.jax.catalogue",
    "exported": "tests.export_cases.exported",
}
"""What lists the cases of a corpus, by a function of this name."""


def judge_of(corpus: str) -> Callable[[Case], Any]:
    """The function that exports a case of a corpus and says what became of it."""
    judge: Callable[[Case], Any] = importlib.import_module(_JUDGES.get(corpus, "tests.sweeps.exports")).judge
    return judge


def cases(corpus: str) -> list[Case]:
    """The cases of one of ``CORPORA``; nothing is built yet."""
    if corpus == ROUND_TRIPS:
        return [dataclasses.replace(case, corpus=corpus) for case in cases("modules")]
    if corpus == "modules":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of what users still write: torch.jit.script
            for module in pkgutil.iter_modules(modules.__path__, f"{modules.__name__}."):
                importlib.import_module(module.name)
        return list(CASES)
    if corpus in _CATALOGUES:
        return [*importlib.import_module(_CATALOGUES[corpus]).catalogue()]
    if corpus in ("keras", "applications"):
        from tests.export_cases.keras.catalogue import catalogue as of_keras

        return [*of_keras(corpus)]
    from tests.export_cases.architectures.catalogue import catalogue

    if corpus == PACKAGES:
        return [dataclasses.replace(case, corpus=corpus) for case in catalogue() if case.family not in _SAME]
    return catalogue()
