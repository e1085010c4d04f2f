"""Objects named on the command line as ``package.module:attribute``."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from entrepot.ir.errors import InputError, MissingDependencyError

T = TypeVar("T")


def load_object(spec: str) -> Any:
    """Import what ``spec`` names; a function or class is called without arguments, anything else is taken as it is.

    The current directory is importable.

    Raises:
        InputError: There is no such module or attribute, or the user's code fails.
        MissingDependencyError: The module needs a package that is not installed.
    """
    module_name, separator, attribute = spec.partition(":")
    if not (separator and module_name and attribute):
        raise InputError(f"'{spec}' does not name an object", hint="write package.module:attribute")
    found = _attribute(_module(module_name), module_name, attribute)
    if inspect.isroutine(found) or inspect.isclass(found) or isinstance(found, functools.partial):
        return run_user_code(found, f"calling {spec}")
    return found


def _module(name: str) -> Any:
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return run_user_code(lambda: importlib.import_module(name), f"importing {name}")
    except ModuleNotFoundError as error:
        missing = error.name or name
        if f"{name}.".startswith(f"{missing}."):
            hint = "the current directory and installed packages are searched"
            raise InputError(f"no module named '{missing}'", hint=hint) from error
        needs = f"importing {name} needs '{missing}', which is not installed"
        raise MissingDependencyError(needs, hint=f"pip install {missing.partition('.')[0]}") from error


def _attribute(module: Any, module_name: str, path: str) -> Any:
    found = module
    for part in path.split("."):
        if not hasattr(found, part):
            public = [name for name in vars(module) if not name.startswith("_")]
            hint = f"it has {', '.join(public) or 'nothing public'}"
            raise InputError(f"module '{module_name}' has no '{path}'", hint=hint)
        found = getattr(found, part)
    return found


def run_user_code(code: Callable[[], T], doing: str) -> T:
    """Call the user's code; whatever it raises becomes one line with the place in their file.

    Raises:
        InputError: The code raised, or ended the process.
        ModuleNotFoundError: The code imports what is not there; the caller knows whether that is the point.
    """
    try:
        return code()
    except ModuleNotFoundError:
        raise
    except (Exception, SystemExit) as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{doing} raised {type(error).__name__}: {error}"
        raise InputError(text, path=f"{place.filename}:{place.lineno}", hint="-vv shows the traceback") from error
