"""The command group: verbs are found by name and loaded only when called; all errors end here."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

import entrepot
from entrepot.cli import streams
from entrepot.cli.exit_codes import Exit, as_dict, exit_code, one_line
from entrepot.cli.output import Output
from entrepot.ir.printable import printable

# here and not in the verbs, so that --help loads none of them
VERBS = {
    "export": "Export a framework's model to a verified .onnx file.",
    "info": "Show what is in a model.",
    "check": "Validate a model and show who can run it.",
    "run": "Run a model on given or random inputs.",
    "convert": "Convert a model to another opset.",
    "simplify": "Remove what a model does not need.",
    "extract": "Cut a part out of a model.",
    "import": "Write a model as source over torch or NumPy.",
    "compare": "Check whether two models compute the same thing.",
    "doctor": "Show versions, providers, threads and memory.",
}

_MODULES = {"import": "importing"}
"""Verbs that cannot be the names of modules."""


def _set(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Options that mean the same before and after the verb, all kept in one ``Output``."""
    output = context.find_root().ensure_object(Output)
    if value:
        setattr(output, str(parameter.name), value)


def common_options() -> list[click.Parameter]:
    """``--json``, ``-q`` and ``-v``: accepted by the group and by every verb."""
    shared: dict[str, Any] = {"expose_value": False, "callback": _set}
    return [
        click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object.", **shared),
        click.Option(["-q", "--quiet"], is_flag=True, help="Print only errors.", **shared),
        click.Option(["-v", "--verbose", "verbosity"], count=True, help="-v progress, -vv tracebacks.", **shared),
    ]


def verb(name: str) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a function a verb: ``Output`` comes first, then the values of its options; it returns an exit status."""

    def decorate(function: Callable[..., Any]) -> click.Command:
        def call(*args: Any, **kwargs: Any) -> Any:
            return function(click.get_current_context().find_root().ensure_object(Output), *args, **kwargs)

        call.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
        command = click.command(name, help=function.__doc__, short_help=VERBS[name])(call)
        command.params += common_options()
        return command

    return decorate


class Group(click.Group):
    """Looks verbs up in ``VERBS`` and ends the process with the status that belongs to the error."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every verb, in the order of the table."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb, from the module of its name."""
        if cmd_name not in VERBS:
            ctx.fail(f"no command '{cmd_name}' (hint: one of {', '.join(VERBS)})")
        return importlib.import_module(f"entrepot.cli.{_MODULES.get(cmd_name, cmd_name)}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of verbs, without loading one."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a verb and exit; every error becomes a line on standard error, or a JSON object with ``--json``."""
        del standalone_mode  # ending the process as click does would hide which error it was
        words = list(sys.argv[1:] if args is None else args) or ["--help"]
        output = Output(closed=streams.reopen_closed())
        stdout = sys.stdout
        try:
            status = self._run(words, prog_name or "entrepot", extra | {"complete_var": complete_var, "obj": output})
        finally:
            sys.stdout = stdout  # a verb may have claimed standard output
        if not streams.flush():
            streams.give_up()
        sys.exit(status)

    def _run(self, words: list[str], prog_name: str, extra: dict[str, Any]) -> int:
        try:
            return int(super().main(words, prog_name, standalone_mode=False, **extra) or Exit.OK)
        except SystemExit as error:
            # click turns every OSError with EPIPE into this
            return _end(error.__context__ or BrokenPipeError(), words)
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the boundary: what escapes here is a status
            return _end(error, words)


def _end(error: BaseException, words: list[str]) -> int:
    if not isinstance(error, BrokenPipeError):
        with contextlib.suppress(OSError):  # standard error may be gone, too
            _tell(error, words)
    return exit_code(error)


def _tell(error: BaseException, words: list[str]) -> None:
    options = [word for word in words if word.startswith("-")]
    if "-vv" in options or sum(word in {"-v", "--verbose"} for word in options) > 1:
        import traceback

        traceback.print_exception(error)
    if exit_code(error) == Exit.INTERRUPTED:
        click.echo("interrupted", err=True)
    elif "--json" in options:
        import json

        click.echo(json.dumps({"error": as_dict(error)}, indent=2))
    else:
        click.echo(f"entrepot: error: {printable(one_line(error))}", err=True)


main = Group(
    "entrepot",
    params=common_options(),
    help="Import neural networks, check them, convert them between opsets, and export them.",
    epilog="Exit status: 0 ok, 1 verification failed, 2 usage or missing file, 3 invalid model, 4 unsupported, "
    "5 missing dependency, 6 resource limit, 70 internal error.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
main = click.version_option(entrepot.__version__, prog_name="entrepot")(main)
