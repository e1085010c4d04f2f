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

from entrepot.ir.errors import EntrepotError, InputError, MissingDependencyError

T = TypeVar("T")


def load_object(spec: str) -> Any:
    """Import what ``spec`` names; a function or class is called without arguments, anything else is used as it is.

    A function that takes arguments makes nothing: it is a model itself.

    The current directory is importable.

    Raises:
        InputError: There is no such module or attribute, or the user's code fails.
        MissingDependencyError: The module needs a package that is not installed.
    """
    module_name, separator, attribute = spec.partition(":")
    if not (separator and module_name and attribute):
        raise InputError(f"'{spec}' does not name an object", hint="write package.module:attribute")
    found = _attribute(_module(module_name), module_name, attribute)
    if inspect.isclass(found) or ((inspect.isroutine(found) or isinstance(found, functools.partial)) and _makes(found)):
        return _run_user_code(found, f"calling {spec}")
    return found


def _makes(function: Any) -> bool:
    """Whether a function can be called without arguments."""
    try:
        inspect.signature(function).bind()
    except TypeError:
        return False
    except ValueError:  # one written in C does not say what it takes
        return True
    return True


def _module(name: str) -> Any:
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return _run_user_code(lambda: importlib.import_module(name), f"importing {name}")
    except MissingDependencyError as error:
        cause = error.__cause__
        if isinstance(cause, ModuleNotFoundError) and cause.name and f"{name}.".startswith(f"{cause.name}."):
            hint = "the current directory and installed packages are searched"
            raise InputError(f"no module named '{cause.name}'", hint=hint) from cause
        raise


def _attribute(module: Any, module_name: str, path: str) -> Any:
    found = module
    for part in path.split("."):
        if not hasattr(found, part):
            public = [name for name in vars(module) if not name.startswith("_")]
            hint = f"it has {', '.join(public) or 'nothing public'}"
            raise InputError(f"module '{module_name}' has no '{path}'", hint=hint)
        found = getattr(found, part)
    return found


def _run_user_code(code: Callable[[], T], doing: str) -> T:
    """Call the user's code; whatever it raises becomes one line that names the place in their file."""
    try:
        return code()
    except EntrepotError:
        raise
    except ModuleNotFoundError as error:
        missing = error.name or str(error)
        needs = f"{doing} needs '{missing}', which is not installed"
        raise MissingDependencyError(needs, hint=f"pip install {missing.partition('.')[0]}") from error
    except (Exception, SystemExit) as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{doing} raised {type(error).__name__}: {error}"
        raise InputError(text, path=f"{place.filename}:{place.lineno}", hint="-vv shows the traceback") from error
