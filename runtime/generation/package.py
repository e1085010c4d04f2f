"""A transformer as graphs that run without the framework it came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from entrepot.ir.arguments import as_choice, as_flag, as_integer, as_kind, described, expected
from entrepot.ir.errors import InputError
from entrepot.ir.model import Model
from entrepot.ir.proof import Proof
from entrepot.runtime.generation.beams import BeamSearch
from entrepot.runtime.generation.decoding import Decoding
from entrepot.runtime.generation.inputs import as_files, check_known, prepared
from entrepot.runtime.generation.kept import Kept
from entrepot.runtime.generation.manifest import Manifest
from entrepot.runtime.generation.prompts import begun, prompted
from entrepot.runtime.generation.search import Stopping, Streamer, search
from entrepot.runtime.generation.settings import SETTINGS, Settings
from entrepot.runtime.generation.whole import whole
from entrepot.runtime.providers import as_providers
from entrepot.runtime.session import Session, device_of

if TYPE_CHECKING:
    from entrepot.ir.arguments import IntegerLike, PathLike
    from entrepot.ir.model import ValueSpec
    from entrepot.runtime.generation.layouts import Layout
    from entrepot.runtime.providers import Providers

Array: TypeAlias = np.ndarray[Any, Any]


class Package:
    """What ``export_transformer`` makes and ``load`` reads: graphs, how they fit together, and how they generate.

    Args:
        graphs: The models by role: ``"decoder"``, with ``"encoder"`` and ``"prefill"`` where there are such;
            ``"model"`` for one that does not generate.
        manifest: How they fit together.
        files: Further files that belong to it, such as a tokenizer's, by name: where they are, or what is in them.
        providers: Who runs the graphs; by default onnxruntime where it is installed, else our own runtime.
        report: The proof that it computes what its source does.
        threads: Threads that one run may use; ``None`` for as many as the process has processors.

    Raises:
        InputError: An argument is none of the things above.

    Attributes:
        graphs: The models by role.
        manifest: How they fit together.
        files: Further files, by name.
        report: The proof made when it was exported; ``None`` for one that was read from a folder.
    """

    def __init__(
        self,
        graphs: Mapping[str, Model],
        manifest: Manifest,
        *,
        files: Mapping[str, PathLike | bytes] | None = None,
        providers: Providers | None = None,
        report: Proof | None = None,
        threads: IntegerLike | None = None,
    ) -> None:
        models: Any = graphs
        if not (isinstance(models, Mapping) and models and all(isinstance(each, Model) for each in models.values())):
            raise expected("graphs", "models by role", graphs, hint="ep.export_transformer makes packages")
        if not (report is None or isinstance(report, Proof)):
            raise expected("report", "a Report or None", report)
        self.graphs, self.report = dict(graphs), report
        self.manifest = as_kind(manifest, Manifest, "manifest")
        self.files = as_files({} if files is None else files)
        self._providers = None if providers is None else as_providers(providers)
        self._threads = None if threads is None else as_integer(threads, "threads", least=1)
        self._sessions: dict[str, Session] = {}
        self._memory: Kept | None = None

    @property
    def settings(self) -> Settings:
        """How it generates unless a call says otherwise."""
        return self.manifest.settings

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know."""
        return self.manifest.notes

    @property
    def generates(self) -> bool:
        """Whether there is a ``generate``."""
        return self.manifest.kind != "forward"

    @property
    def inputs(self) -> dict[str, ValueSpec]:
        """What a caller gives: the inputs of the graphs that no other graph and no step makes."""
        manifest = self.manifest
        made = {*manifest.constants, manifest.positions, manifest.first_scored, manifest.past_length} | {
            state.past for state in manifest.states
        }
        specs = {spec.name: spec for role in _ORDER if role in self.graphs for spec in self.graphs[role].inputs}
        return {name: spec for name, spec in specs.items() if name not in made}

    def using(self, providers: Providers | None = None, *, threads: IntegerLike | None = None) -> Package:
        """The same package, run by other providers, or with another number of threads.

        Args:
            providers: Who runs the graphs; by default whoever runs them here.
            threads: Threads that one run may use; by default as here.

        Raises:
            InputError: An argument is none of the things above.
        """
        chosen = self._providers if providers is None else providers
        count = self._threads if threads is None else threads
        files, report = self.files, self.report
        return Package(self.graphs, self.manifest, files=files, providers=chosen, report=report, threads=count)

    def session(self, role: str) -> Session:
        """The session that runs the graph of a role, made when it is first needed.

        Raises:
            InputError: There is no such graph.
        """
        asked: Any = role
        if not (isinstance(asked, str) and asked in self.graphs):
            raise InputError(f"there is no graph {described(role)}", hint=f"there are {', '.join(self.graphs)}")
        if role not in self._sessions:
            providers = self._providers or _default_providers(self.graphs[role])
            self._sessions[role] = Session(self.graphs[role], providers=providers, threads=self._threads)
        return self._sessions[role]

    def start(self, **inputs: Any) -> Decoding:
        """Run the prompt; what is returned has the scores of the next tokens, and takes them with ``step``.

        Args:
            inputs: As for the model: ``input_ids``, ``attention_mask``, ``pixel_values``, ... Of an encoder-decoder,
                ``decoder_input_ids`` may be left out.

        Raises:
            InputError: They are not what the graphs take.
        """
        return self._started(inputs, every=True)

    def _started(self, inputs: Mapping[str, Any], *, every: bool) -> Decoding:
        if not self.generates or self.manifest.kind == "loop":
            raise InputError("this package does not decode step by step", hint="use generate, or forward")
        manifest = self.manifest
        given = prepared(inputs, self.inputs)
        tokens, mask = prompted(manifest, given, self.inputs)
        needed = frozenset(spec.name for spec in self.graphs["decoder"].inputs)
        roles, kept = frozenset(self.graphs), self._kept()
        return Decoding(manifest, self._run, roles, needed, given, tokens, mask, every=every, kept=kept)

    def _kept(self) -> Kept:
        """Where a cache is between steps: with who runs the decoder."""
        if self._memory is None:
            session = self.session("decoder")
            self._memory = Kept(device_of(session), session.providers, self._threads)
        return self._memory

    def _run(self, role: str, feeds: Mapping[str, Any]) -> dict[str, Any]:
        session = self.session(role)
        specs = {spec.name: spec for spec in session.inputs}
        missing = [name for name in specs if name not in feeds]
        if missing:
            raise InputError(f"'{missing[0]}' is missing", hint=f"{self.manifest.kind} takes {', '.join(self.inputs)}")
        taken = {name: _as(feeds[name], spec) for name, spec in specs.items()}
        return session.run(taken)

    def generate(
        self,
        *,
        stopping: Stopping | None = None,
        streamer: Streamer | None = None,
        return_new_only: bool = False,
        **given: Any,
    ) -> Array:
        """Generate tokens after a prompt, or from what an encoder is given.

        Args:
            stopping: Called with all tokens so far; says whether to stop, for all rows or for each.
            streamer: Called with the new token of every row; not with beams.
            return_new_only: Leave the prompts out of the result.
            given: The model's inputs, and settings such as ``max_new_tokens``, ``num_beams`` or ``do_sample``; see
                ``Settings``. What is not given is as in the model's ``generation_config.json``.

        Returns:
            All tokens, of shape ``(rows, length)``; rows that ended are filled with padding.

        Raises:
            InputError: An input or a setting is not what the package takes.
        """
        if not self.generates:
            raise InputError("this package does not generate", hint="use forward")
        check_known(given, self.inputs)
        chosen = {name: given.pop(name) for name in SETTINGS & given.keys()}
        settings = self.settings.changed(chosen)
        for name, function in (("stopping", stopping), ("streamer", streamer)):
            if function is not None and not callable(function):
                raise expected(name, "a function of tokens", function)
        if settings.num_beams > 1 and streamer is not None:
            raise InputError(
                "beams cannot be streamed: they change until the end", hint="leave streamer or num_beams out"
            )
        new_only = as_flag(return_new_only, "return_new_only")
        if self.manifest.kind == "loop":
            if stopping is not None or streamer is not None:
                raise InputError("a loop in the graph calls no functions", hint="leave stopping and streamer out")
            return whole(self.session("loop"), self.manifest, prepared(given, self.inputs), chosen, new_only=new_only)
        decoding = self._started(begun(self.manifest, given, settings.decoder_start_token_id), every=False)
        prompt = decoding.tokens.shape[1]
        if settings.num_beams > 1:
            tokens = BeamSearch(decoding, settings, stopping).run()
        else:
            decoding.select(np.repeat(np.arange(decoding.rows), settings.num_return_sequences))
            tokens = search(decoding, settings, stopping, streamer)
        return tokens[:, prompt:] if new_only else tokens

    def forward(self, **inputs: Any) -> dict[str, Any]:
        """Run the model once.

        Args:
            inputs: As for the model.

        Returns:
            Its results by name; of a model that generates, the ``logits`` at every token of the prompt.

        Raises:
            InputError: They are not what the graphs take.
        """
        if self.manifest.kind in {"decoder", "encoder-decoder"}:
            return {self.manifest.logits: self.start(**inputs).all_logits}
        given = prepared(inputs, self.inputs)
        return self._run("model", given)

    def save(self, path: PathLike, *, layout: Layout = "entrepot") -> None:
        """Write a folder: ``entrepot.json``, a file for each graph, and one for the weights of all of them.

        Args:
            path: The folder; one that has this name is replaced if it is a package, and only when the new one is whole.
            layout: ``"entrepot"``, which ``load`` reads. ``"optimum"``: files, inputs and outputs with the names that
                optimum and transformers.js ask for. ``"genai"``: the same with the configuration of onnxruntime-genai.

        Raises:
            ConversionError: The layout has no place for such a package.
            StorageError: It cannot be written; what was there before is untouched.
            InputError: ``path`` is a folder that is no package.
        """
        from entrepot.runtime.generation.writing import save

        save(self, path, as_choice(layout, ("entrepot", "optimum", "genai"), "layout"))

    def __repr__(self) -> str:
        lines = [f"entrepot.Package, {self.manifest.kind}"]
        lines += [f"  in   {spec}" for spec in self.inputs.values()]
        lines += [f"  {role}: {model._summary()}" for role, model in self.graphs.items()]  # noqa: SLF001
        lines += [f"  {self.report.summary()}"] if self.report is not None else []
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


_BFLOAT16 = 16
"""ONNX's number of the type, in which onnxruntime multiplies nothing on a processor."""

_ORDER = ("model", "encoder", "prefill", "decoder", "loop")


def _default_providers(model: Model) -> tuple[str, ...]:
    from entrepot.runtime.providers.onnxruntime.provider import OnnxRuntimeProvider

    narrow = any(value.dtype == _BFLOAT16 for value in model.ir.graph.initializers.values())
    return ("cpu",) if narrow or OnnxRuntimeProvider.available() else ("onnxruntime",)


def _as(value: Any, spec: ValueSpec) -> Any:
    """An array in the element type that a graph takes, where no value can change."""
    if isinstance(value, np.ndarray) and spec.dtype is not None and value.dtype.name != spec.dtype:
        return value.astype(spec.dtype) if value.dtype.kind in "iub" else value
    return value
