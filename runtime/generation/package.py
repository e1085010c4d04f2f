"""A transformer as graphs that run without the framework it came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from entrepot.ir.arguments import as_choice, as_flag, as_integer, as_kind, described, expected
from entrepot.ir.errors import InputError
from entrepot.ir.model import Model
from entrepot.ir.proof import Proof
from entrepot.runtime.arrays import as_array
from entrepot.runtime.generation.beams import BeamSearch
from entrepot.runtime.generation.decoding import Decoding
from entrepot.runtime.generation.draws import any_seed
from entrepot.runtime.generation.inputs import as_files, default_mask, prepared
from entrepot.runtime.generation.manifest import Manifest
from entrepot.runtime.generation.search import Stopping, Streamer, search
from entrepot.runtime.generation.settings import SETTINGS, Settings, padded_ends
from entrepot.runtime.providers import as_providers
from entrepot.runtime.session import Session

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
        if manifest.source_mask in self.inputs and manifest.source in given:
            given.setdefault(manifest.source_mask, default_mask(given[manifest.source], self.settings))
        tokens = self._prompt(given)
        mask = given.pop(manifest.mask) if manifest.mask in given else default_mask(tokens, self.settings)
        if tokens.ndim != 2 or not tokens.size:
            raise InputError(f"'{manifest.tokens}' has shape {tokens.shape}, expected rows of at least one token")
        if mask.shape != tokens.shape:
            raise InputError(f"{manifest.mask} has shape {mask.shape}, expected {tokens.shape} as {manifest.tokens}")
        needed = frozenset(spec.name for spec in self.graphs["decoder"].inputs)
        roles, mask = frozenset(self.graphs), mask.astype(np.int64)
        return Decoding(manifest, self._run, roles, needed, given, tokens, mask, every=every)

    def _prompt(self, given: dict[str, Any]) -> Array:
        manifest = self.manifest
        if manifest.tokens in given:
            return np.asarray(given.pop(manifest.tokens))
        if manifest.kind == "decoder":
            raise InputError(f"'{manifest.tokens}' is missing", hint="give the prompt as an array of tokens")
        start = self.settings.decoder_start_token_id
        if start is None:
            raise InputError(
                f"'{manifest.tokens}' is missing, and nothing says what decoding begins with",
                hint="give it, or decoder_start_token_id",
            )
        return np.full((self._rows(given), 1), start, np.int64)

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
            return self._whole(given, chosen, new_only=new_only, functions=(stopping, streamer))
        decoding = self._started(self._begun(given, settings.decoder_start_token_id), every=False)
        prompt = decoding.tokens.shape[1]
        if settings.num_beams > 1:
            tokens = BeamSearch(decoding, settings, stopping).run()
        else:
            tokens = search(decoding, settings, stopping, streamer)
        return tokens[:, prompt:] if new_only else tokens

    def _whole(
        self, given: dict[str, Any], chosen: dict[str, Any], *, new_only: bool, functions: tuple[Any, Any]
    ) -> Array:
        """What the graph of a loop generates by itself."""
        if any(function is not None for function in functions):
            raise InputError("a loop in the graph calls no functions", hint="leave stopping and streamer out")
        session, manifest = self.session("loop"), self.manifest
        defaults = session.model.ir.graph.initializers
        said = {name: value for name, value in chosen.items() if name in defaults}
        lost = [name for name in chosen if name not in said and chosen[name] != getattr(self.settings, name)]
        if lost:
            raise InputError(f"this loop in the graph has no input for {lost[0]}", hint="export with loop='host'")
        feeds = prepared(given, self.inputs)
        if manifest.source_mask in self.inputs and manifest.source in feeds:
            feeds.setdefault(manifest.source_mask, default_mask(feeds[manifest.source], self.settings))
        if manifest.mask in self.inputs and manifest.tokens in feeds:
            feeds.setdefault(manifest.mask, default_mask(feeds[manifest.tokens], self.settings))
        changed = self.settings.changed(said)
        feeds |= {
            name: np.asarray(getattr(changed, name), _type_of(defaults[name]))
            for name in said
            if name != "eos_token_id"
        }
        if "seed" in defaults and changed.seed is None:
            feeds["seed"] = np.asarray(any_seed(), np.int64)
        if "eos_token_id" in said:
            feeds["eos_token_id"] = padded_ends(changed.eos_token_id)
            feeds["pad_token_id"] = np.asarray(changed.pad, np.int64)
        prompt = feeds[manifest.tokens].shape[1] if manifest.tokens in feeds else 1
        if "max_new_tokens" not in said and self.settings.max_new_tokens is None:
            feeds["max_new_tokens"] = np.asarray(self.settings.most(prompt), np.int64)
        tokens = session.run(feeds)["sequences"]
        return tokens[:, prompt:] if new_only else tokens

    def _begun(self, given: dict[str, Any], start: int | None) -> dict[str, Any]:
        """The inputs, with the token that decoding begins with before a prompt that lacks it, as transformers does."""
        name = self.manifest.tokens
        if self.manifest.kind != "encoder-decoder" or start is None:
            return given
        if given.get(name) is None:
            return given | {name: np.full((self._rows(given), 1), start, np.int64)}
        tokens = np.asarray(as_array(given[name]))
        if tokens.ndim != 2 or not tokens.size or (tokens[:, 0] == start).any():
            return given
        return given | {name: np.concatenate([np.full_like(tokens[:, :1], start), tokens], 1)}

    def _rows(self, given: Mapping[str, Any]) -> int:
        """How many rows there are, by what the encoder is given."""
        first = given.get(self.manifest.source)
        if first is None:
            raise InputError(f"'{self.manifest.source}' is missing", hint=f"give {', '.join(self.inputs)}")
        array = np.asarray(as_array(first))
        if not array.ndim:
            raise InputError(f"'{self.manifest.source}' is a single number", hint="give rows")
        return len(array)

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

            layout: ``"entrepot"``, which ``load`` reads. ``"optimum"``: one graph, with the names that optimum and
                transformers.js ask for. ``"genai"``: the same with the configuration of onnxruntime-genai.

        Raises:
            ConversionError: The layout has no place for such a package: it is for decoders.
            StorageError: It cannot be written; what was there before is untouched.
            InputError: ``path`` is a folder that is no package.
        """
        from entrepot.runtime.generation.folder import save

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


def _type_of(value: Any) -> np.dtype[Any]:
    return value.dtype.numpy()


def _as(value: Any, spec: ValueSpec) -> Any:
    """An array in the element type that a graph takes, where no value can change."""
    if isinstance(value, np.ndarray) and spec.dtype is not None and value.dtype.name != spec.dtype:
        return value.astype(spec.dtype) if value.dtype.kind in "iub" else value
    return value
