"""What a test asks of the fixture ``parity``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest

from entrepot.exporters.api import export, verify
from entrepot.exporters.conversion import convert_opset
from entrepot.importers.dispatch import maker, to
from entrepot.ir.arguments import as_opset, expected
from entrepot.ir.errors import ConversionError, EntrepotError, UnsupportedOpError, VerificationError
from entrepot.ir.io.destination import write_file
from entrepot.ir.io.read import Source, load
from entrepot.ir.model import Model
from entrepot.parity.feeds import Feeds, generate, stepped, symbolic_axes
from entrepot.parity.report.report import Report
from entrepot.parity.tolerance import ToleranceLike
from entrepot.runtime.providers import Providers
from entrepot.runtime.session import Session
from entrepot.testing.golden import difference, portrait
from entrepot.testing.plugin import NOTE
from entrepot.testing.structure import interface_differences, structure_differences

_SIZES = (2, 9, 33, 65)
"""Where made-up sizes begin: images that are halved time and again have to be larger than sequences."""

_REFUSALS = (ConversionError, UnsupportedOpError, VerificationError)


class Parity:
    """Fails the test that uses it where a model does not compute what it was made from.

    A failure shows the table of the report, and writes its page into the folder of ``--parity-report``, or else into
    the test's ``tmp_path``.

    Args:
        request: Of the test.
    """

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request
        self._pages = 0

    def export(
        self,
        module: Any,
        sample: Any = None,
        *,
        tolerance: ToleranceLike | None = None,
        opsets: Sequence[int] | int | None = None,
        providers: Providers | None = None,
        **options: Any,
    ) -> Model:
        """Export a module, and run it beside the model at each opset.

        Args:
            module: Anything ``ep.export`` takes.
            sample: What it is called with.
            tolerance: What agreement means; see ``ep.compare``.
            opsets: Versions that the model has to come in; the exporter's own choice if left out.
            providers: Who runs it; by default ``cpu``, and ``onnxruntime`` where it is installed.
            options: Others of ``ep.export``.

        Returns:
            The model, at the first of ``opsets``.
        """
        __tracebackhide__ = True
        versions = _as_opsets(opsets)
        newest = max(versions, default=None)
        model = self._exported(module, sample, {"tolerance": tolerance, "opset": newest, **options})
        made: dict[int, Model] = {}
        failed: list[tuple[str, Report]] = []
        for version in versions or [model.opset]:
            made[version] = self._converted(model, version)
            if version == newest and providers is None and options.get("verify", True):
                continue  # the export has just proved it
            report = verify(module, made[version], sample, providers=providers, tolerance=tolerance)
            failed += [] if report else [(f"opset {version}", report)]
        if failed:
            self._fail("the exported model does not compute what its source does", failed)
        return next(iter(made.values()))

    def round_trip(
        self,
        model: Source,
        through: Sequence[str] | str = ("torch",),
        *,
        feeds: Feeds | None = None,
        tolerance: ToleranceLike | None = None,
        structure: bool = False,
    ) -> Model:
        """Import a model into one framework after the other, and export it again from each.

        What comes back has to compute the same, and to have the same inputs and outputs with the same axes free.

        Args:
            model: A ``Model``, or anything ``ep.load`` reads.
            through: Names of frameworks, as ``ep.to`` takes them.
            feeds: Inputs by name; made up if left out.
            tolerance: What agreement means; see ``ep.compare``.
            structure: Ask for the same weights under the same names, and the same operators, too.

        Returns:
            What came back at last.
        """
        __tracebackhide__ = True
        first = current = load(model)
        given = made_up(first) if feeds is None else feeds
        sample = tuple(given[spec.name] for spec in first.inputs)
        kept = {
            "opset": first.opset,
            "dynamic": _free_axes(first),
            "input_names": [spec.name for spec in first.inputs],
            "output_names": [spec.name for spec in first.outputs],
        }
        for framework in [through] if isinstance(through, str) else through:
            net = self._imported(current, framework, given)
            current = self._exported(net, sample, {"tolerance": tolerance, **kept})
            report = verify(first, current, given, tolerance=tolerance)
            if not report:
                self._fail(f"the model came back from {framework} changed", [(framework, report)])
            found = interface_differences(first, current)
            found += structure_differences(first, current) if structure else []
            if found:
                pytest.fail(f"the model came back from {framework} changed:\n  " + "\n  ".join(found))
        return current

    def golden(self, model: Source, name: str, *, feeds: Feeds | None = None) -> None:
        """Compare a model with its portrait in ``golden/<test file>/<name>.txt`` beside the test.

        The portrait has the model's inputs and outputs, its nodes, and a few figures about each weight and each result.
        Figures may be off by a thousandth of the largest in their line. ``pytest --parity-update`` writes it.

        Args:
            model: A ``Model``, or anything ``ep.load`` reads.
            name: Of the file: letters, digits, ``-``, ``_`` and ``.``.
            feeds: Inputs by name; made up if left out.
        """
        __tracebackhide__ = True
        asked: Any = name
        if not (isinstance(asked, str) and re.fullmatch(r"\w[\w.-]*", asked)):
            raise expected("name", "letters, digits, '-', '_' and '.'", name)
        path = self._request.path.parent / "golden" / self._request.path.stem / f"{name}.txt"
        now = portrait(load(model), feeds)
        before = path.read_text(encoding="utf-8") if path.is_file() else None
        found = now if before is None else difference(before, now)
        if not found:
            return
        shown = self._shown(path)
        if self._request.config.getoption("--parity-update"):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, lambda file: file.write(now.encode()))
            self._note(f"wrote {shown}")
        elif before is None:
            pytest.fail(f"there is no {shown}; pytest --parity-update writes it")
        else:
            pytest.fail(f"the model is not that of {shown}; if it should be, run pytest --parity-update\n{found}")

    def _exported(self, source: Any, sample: Any, options: dict[str, Any]) -> Model:
        __tracebackhide__ = True
        try:
            model = export(source, sample, **options)
        except VerificationError as error:
            self._refuse("the exported model does not compute what its source does", error)
        except _REFUSALS as error:
            self._refuse("the export was refused", error)
        return model

    def _converted(self, model: Model, version: int) -> Model:
        __tracebackhide__ = True
        try:
            return convert_opset(model, version)
        except ConversionError as error:
            self._refuse(f"the model has no form at opset {version}", error)

    def _imported(self, model: Model, framework: str, feeds: Feeds) -> Any:
        __tracebackhide__ = True
        options = {"sample": feeds} if "sample" in inspect.signature(maker(framework)).parameters else {}
        try:
            return to(model, framework, **options)
        except _REFUSALS as error:
            self._refuse(f"{framework} refused the model", error)

    def _refuse(self, what: str, error: EntrepotError) -> NoReturn:
        __tracebackhide__ = True
        report = getattr(error, "report", None)
        if isinstance(report, Report):
            self._fail(what, [("", report)])
        raise pytest.fail.Exception(f"{what}: {error}") from None

    def _fail(self, what: str, failed: Sequence[tuple[str, Report]]) -> NoReturn:
        __tracebackhide__ = True
        lines = [what]
        for title, report in failed:
            path = self._page()
            report.to_html(path)
            self._note(f"report: {path}")
            lines += ["", *([f"{title}:"] if title else []), str(report), f"report: {path}"]
        raise pytest.fail.Exception("\n".join(lines)) from None

    def _page(self) -> Path:
        chosen = self._request.config.getoption("--parity-report")
        folder = Path(chosen) if chosen else self._request.getfixturevalue("tmp_path")
        folder.mkdir(parents=True, exist_ok=True)
        self._pages += 1
        stem = re.sub(r"[^\w.-]+", "_", self._request.node.nodeid)[-100:] if chosen else "parity"
        return folder / f"{stem}-{self._pages}.html"

    def _note(self, text: str) -> None:
        self._request.node.user_properties.append((NOTE, text))

    def _shown(self, path: Path) -> str:
        root = self._request.config.rootpath
        return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


def _as_opsets(given: Any) -> list[int]:
    if given is None:
        return []
    if isinstance(given, Sequence) and not isinstance(given, str):
        return [as_opset(each) for each in given]
    return [as_opset(given)]


def _free_axes(model: Model) -> dict[str, dict[int, str]] | bool:
    """The axes that vary, by input, as ``export`` takes them."""
    found: dict[str, dict[int, str]] = {}
    for spec, axis, symbol in symbolic_axes(model):
        found.setdefault(spec.name, {})[axis] = symbol
    return found or False


def made_up(model: Model) -> Feeds:
    """Inputs that a model takes, at sizes that are all different, and large enough for it.

    Raises:
        InputError: No values can be made up for an input.
        EntrepotError: The model refuses all of them.
    """
    symbols = dict.fromkeys(symbol for _, _, symbol in symbolic_axes(model) if symbol.isidentifier())
    session = Session(model)
    for least in _SIZES:
        dims = {symbol: stepped(model, symbol, size) for size, symbol in enumerate(symbols, start=least)}
        feeds = generate(model, dims=dims)
        try:
            session.run(feeds)
        except EntrepotError:
            if least == _SIZES[-1]:
                raise
        else:
            return feeds
    raise AssertionError
