"""Which exit status each kind of failure has, and how it is reported: the one place that maps errors."""

from __future__ import annotations

import errno
import json
import os
from enum import IntEnum
from typing import Any

import click

from entrepot.ir import errors


class Exit(IntEnum):
    """The exit statuses of the command line."""

    OK = 0
    DIFFERS = 1
    USAGE = 2
    INVALID_MODEL = 3
    UNSUPPORTED = 4
    MISSING_DEPENDENCY = 5
    RESOURCE_LIMIT = 6
    INTERNAL = 70
    INTERRUPTED = 130
    BROKEN_PIPE = 141


# the first class that matches counts, so derived errors come before their bases
_CODES: tuple[tuple[type[BaseException], Exit], ...] = (
    (errors.VerificationError, Exit.DIFFERS),
    (errors.ModelFormatError, Exit.INVALID_MODEL),
    (errors.UnsupportedOpError, Exit.UNSUPPORTED),
    (errors.ConversionError, Exit.UNSUPPORTED),
    (errors.MissingDependencyError, Exit.MISSING_DEPENDENCY),
    (errors.ResourceLimitError, Exit.RESOURCE_LIMIT),
    (errors.EntrepotError, Exit.USAGE),
    (click.Abort, Exit.INTERRUPTED),
    (KeyboardInterrupt, Exit.INTERRUPTED),
    (click.ClickException, Exit.USAGE),
    (BrokenPipeError, Exit.BROKEN_PIPE),
    (MemoryError, Exit.RESOURCE_LIMIT),
    (OSError, Exit.USAGE),
)
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EMFILE, errno.EFBIG}


def exit_code(error: BaseException) -> Exit:
    """The status for an error that ends the command."""
    if isinstance(error, OSError) and error.errno in _FULL:
        return Exit.RESOURCE_LIMIT
    if isinstance(error, OSError) and error.errno == errno.EPIPE:
        return Exit.BROKEN_PIPE
    if isinstance(error, errors.ExecutionError) and isinstance(error.__cause__, MemoryError):
        return Exit.RESOURCE_LIMIT
    return next((code for kind, code in _CODES if isinstance(error, kind)), Exit.INTERNAL)


def one_line(error: BaseException) -> str:
    """What the user reads: what happened, where, and what to do (a conversion's blockers get a line each)."""
    if isinstance(error, click.UsageError) and error.ctx is not None:
        message = " ".join(error.format_message().split())  # choices are a line each, with a tab
        return f"{message.rstrip('.')} (hint: '{error.ctx.command_path} --help' lists what it accepts)"
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, MemoryError):
        return f"out of memory{f': {error}' if str(error) else ''}"
    if exit_code(error) == Exit.INTERNAL:
        return f"internal error: {type(error).__name__}: {error} (hint: -vv shows the traceback; please report it)"
    if isinstance(error, OSError) and not isinstance(error, errors.EntrepotError) and error.strerror:
        return f"{f'{error.filename}: ' if error.filename else ''}{error.strerror}"
    return str(error) or type(error).__name__


def as_dict(error: BaseException) -> dict[str, Any]:
    """The same for ``--json``."""
    facts: dict[str, Any] = {
        "type": type(error).__name__,
        "message": one_line(error),
        "exit_code": int(exit_code(error)),
    }
    if isinstance(error, errors.EntrepotError):
        where = {key: getattr(error, key) for key in ("path", "graph", "node", "value", "hint")}
        facts |= {"message": error.message}
        facts |= {key: os.fspath(value) for key, value in where.items() if value is not None}
    if isinstance(error, errors.VerificationError) and hasattr(error.report, "to_json"):
        facts["report"] = json.loads(error.report.to_json())
    if isinstance(error, errors.ConversionError):
        facts["blockers"] = [as_dict(blocker) for blocker in error.blockers]
    return facts
