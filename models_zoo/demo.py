"""``make demo``: models become files that are proved to compute the same thing, here and elsewhere.

Needs torch and scikit-learn; onnxruntime and Keras take part where they are installed. Writes to ``out/demo`` or the
folder named on the command line, and exits with 1 when anything disagrees.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import entrepot as ep
from entrepot import models_zoo
from entrepot.models_zoo.torch.lenet_digits import Digits, LeNet, accuracy, channels_last, digits, flattened, train
from entrepot.parity.plan import Case
from entrepot.parity.verify import verify
from entrepot.runtime.blas import choice

Runner: TypeAlias = Callable[[np.ndarray], np.ndarray]

BATCHES = (1, 2, 7, 64)
NEXT = """\
[bold]What to try next[/]
  your own model      [cyan]model = ep.export(module, sample, "net.onnx")[/]
  what is in a file   [cyan]{entrepot} info {folder}/resnet50.onnx[/]
  run a file          [cyan]{entrepot} run {folder}/resnet50.onnx --input "x=rand\\[1,3,224,224]"[/]
  another opset       [cyan]{entrepot} convert {folder}/bert.onnx --opset 18 -o {folder}/bert18.onnx[/]
  the code that runs  [cyan]print(ep.Session("{folder}/lenet.onnx").source())[/]
  more models         [cyan]from entrepot import models_zoo; models_zoo.names()[/]
  read on             README.md, docs/quickstart.md"""


def main(arguments: Sequence[str] = ()) -> int:
    """Run the demo.

    Args:
        arguments: The folder to write to, if not ``out/demo``.

    Returns:
        0, or 1 when something disagreed or failed.
    """
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 110)  # tables in a log need space
    tour = Tour(console, Path(arguments[0] if arguments else "out/demo"))
    tour.folder.mkdir(parents=True, exist_ok=True)
    console.print(f"cpu provider: {choice()}", style="dim")
    start = time.perf_counter()
    try:
        fine = [tour.lenet(), tour.resnet50(), tour.bert(), tour.pipeline(), tour.keras()]
    except ep.EntrepotError as error:
        tour.console.print(f"[bold red]{type(error).__name__}[/]: {escape(str(error))}")
        return 1
    tour.farewell(all(fine), time.perf_counter() - start)
    return 0 if all(fine) else 1


@dataclass
class TorchSource:
    """A module as the truth that a model is judged by.

    Attributes:
        name: What the report calls it.
        module: The module, in eval mode.
        model: The model, for the names of its outputs.
    """

    name: str
    module: Any
    model: ep.Model

    def run(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Outputs of the module, by the model's names."""
        import torch

        with torch.no_grad():
            outputs = self.module(*(torch.from_numpy(array) for array in feeds.values()))
        tensors = outputs if isinstance(outputs, tuple) else (outputs,)
        return {spec.name: tensor.numpy() for spec, tensor in zip(self.model.outputs, tensors, strict=True)}


@dataclass
class Tour:
    """What the stations of the demo share: where they print, and where they write."""

    console: Console
    folder: Path

    def lenet(self) -> bool:
        """Train on real data, export, verify, save, load, run in three places."""
        self._heading("1. LeNet, trained on scikit-learn's 1,797 handwritten digits")
        import torch

        with torch.random.fork_rng(devices=[]), self._stage("training") as tell:
            torch.default_generator.manual_seed(0)
            data = digits()
            net = train(LeNet(), data, epochs=30, progress=tell)
        sample = torch.from_numpy(data.test_images[:1])
        model, path = self._export(net, (sample,), "lenet")
        agrees = self._verify(net, model, _batches({"image": data.test_images}, BATCHES))

        def in_torch(images: np.ndarray) -> np.ndarray:
            with torch.no_grad():
                return net(torch.from_numpy(images)).numpy()

        return self._accuracies({"PyTorch": in_torch, **_runners(path, "image")}, data) and agrees

    def resnet50(self) -> bool:
        """The real layer plan, 25.6 million weights, image size and batch free."""
        self._heading("2. ResNet-50 at 224x224, random weights")
        zoo = models_zoo.build("resnet50", size=224)
        model, path = self._export(zoo.module, zoo.sample, "resnet50")
        images = np.random.default_rng(0).standard_normal((7, 3, 224, 224), dtype=np.float32)
        smaller = Case("batch 2, 160x192", {"x": images[:2, :, :160, :192]})
        many = Case("batch 64, 96x96", {"x": np.tile(images[:, :, :96, :96], (10, 1, 1, 1))[:64]})
        agrees = self._verify(zoo.module, model, [*_batches({"x": images}, (1, 2, 7)), smaller, many])
        return self._runs_elsewhere(path, {"x": images[:1]}) and agrees

    def bert(self) -> bool:
        """Token ids and a padding mask; batch and length free."""
        self._heading("3. A BERT-like encoder with a padding mask, random weights")
        zoo = models_zoo.build("bert", width=256, layers=4, heads=4, vocabulary=5000, length=32)
        model, path = self._export(zoo.module, zoo.sample, "bert")
        feeds = _tokens(64, 48)
        shorter = Case("batch 2, length 5", _tokens(2, 5))
        agrees = self._verify(zoo.module, model, [*_batches(feeds, BATCHES), shorter])
        return self._runs_elsewhere(path, feeds) and agrees

    def pipeline(self) -> bool:
        """A classical model, exported by the same call."""
        self._heading("4. A scikit-learn pipeline: scaling and a random forest, on the same digits")
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        data = flattened(digits())
        model = make_pipeline(StandardScaler(), RandomForestClassifier(60, random_state=0))
        with self._stage("fitting"):
            model.fit(data.train_images, data.train_labels)
        path = self._export_plainly(model, data.test_images[:1], "forest")
        return self._accuracies({"scikit-learn": model.predict_proba, **_runners(path, "X", "probabilities")}, data)

    def keras(self) -> bool:
        """A network of another framework, by the same call."""
        self._heading("5. A Keras network, on the same digits")
        if importlib.util.find_spec("keras") is None or importlib.util.find_spec("tensorflow") is None:
            missing = "Keras is not installed: pip install 'entrepot[tensorflow]', and run me again"
            self.console.print(missing, style="dim", markup=False)
            return True
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        data = channels_last(digits())
        with self._stage("training"):
            model = _keras_network(data, epochs=12)
        path = self._export_plainly(model, data.test_images[:1], "keras")
        name = ep.load(path).inputs[0].name
        runners = {"Keras": lambda images: model.predict(images, verbose=0), **_runners(path, name)}
        return self._accuracies(runners, data)

    def farewell(self, fine: bool, seconds: float) -> None:
        """The result, and what to do with it."""
        self._heading("Done" if fine else "Something disagrees")
        colour, text = ("green", "everything agrees") if fine else ("bold red", "see the red lines above")
        self.console.print(f"[{colour}]{text}[/]; {seconds:.0f} s; files are in [bold]{self.folder}[/]\n")
        command = Path(sys.executable).with_name("entrepot")
        shown = command.relative_to(Path.cwd()) if command.is_relative_to(Path.cwd()) else "entrepot"
        self.console.print(NEXT.format(folder=self.folder, entrepot=shown), soft_wrap=True)

    def _export(self, module: Any, sample: Any, name: str) -> tuple[ep.Model, Path]:
        path = self.folder / f"{name}.onnx"
        with self._stage(f'model = ep.export(module, sample, "{path}")') as tell:
            ep.export(module, sample, path, progress=tell)
        model = ep.load(path)  # what is judged from here on is the file
        self.console.print(escape(repr(model)))
        self.console.print(f"  {path.stat().st_size / 2**20:.1f} MiB on disk\n", style="dim")
        return model, path

    def _verify(self, module: Any, model: ep.Model, cases: Sequence[Case]) -> bool:
        source = TorchSource(type(module).__name__, module, model)
        with self._stage("verifying the file against the module") as tell:
            report = verify(source, model, cases, progress=tell)
        self.console.print(report)
        return report.ok

    def _export_plainly(self, model: Any, sample: np.ndarray, name: str) -> Path:
        path = self.folder / f"{name}.onnx"
        with self._stage(f'model = ep.export(model, sample, "{path}")') as tell:
            exported = ep.export(model, sample, path, progress=tell)
        self.console.print(escape(repr(exported)))
        return path

    def _accuracies(self, runners: Mapping[str, Runner], data: Digits) -> bool:
        scores = {name: accuracy(predict, data) for name, predict in runners.items()}
        table = Table("runs in", "accuracy", title=f"{len(data.test_labels)} test images", title_justify="left")
        for name, score in scores.items():
            table.add_row(name, f"{score:.2%}")
        self.console.print(table)
        return len(set(scores.values())) == 1 and min(scores.values()) > 0.9

    def _runs_elsewhere(self, path: Path, feeds: dict[str, np.ndarray]) -> bool:
        """Load the file with both runtimes, as a user of the file would."""
        ours = list(ep.Session(path).run(feeds).values())
        elsewhere = _onnxruntime(path)
        if elsewhere is None:
            return True
        same = ep.compare(dict(_named(ours)), dict(_named(elsewhere(feeds)))).ok
        self.console.print(f"loaded and run by entrepot and by onnxruntime: {'same result' if same else 'DIFFERENT'}")
        return same

    def _heading(self, text: str) -> None:
        self.console.print()
        self.console.rule(f"[bold]{text}", align="left")

    @contextmanager
    def _stage(self, text: str) -> Iterator[Callable[[str], None]]:
        """Show what is going on while it does, and how long it took."""
        start = time.perf_counter()
        with self.console.status(escape(text)) as status:
            yield lambda line: status.update(f"{escape(text)}  [dim]{escape(line)}[/]")
        self.console.print(f"[cyan]{escape(text)}[/]  [dim]{time.perf_counter() - start:.1f} s[/]")


def _keras_network(data: Digits, *, epochs: int) -> Any:
    import keras

    keras.utils.set_random_seed(0)
    layers = [
        keras.layers.Conv2D(16, 3, padding="same", activation="relu"), keras.layers.MaxPooling2D(),
        keras.layers.Conv2D(32, 3, padding="same", activation="relu"), keras.layers.Flatten(),
        keras.layers.Dense(64, activation="gelu"), keras.layers.Dense(10, activation="softmax"),
    ]  # fmt: skip
    network = keras.Sequential([keras.Input((8, 8, 1), name="image"), *layers])
    network.compile("adam", "sparse_categorical_crossentropy")
    network.fit(data.train_images, data.train_labels, epochs=epochs, verbose=0)
    return network


def _runners(path: Path, name: str, output: str | None = None) -> dict[str, Runner]:
    """Who runs a file: ours, and onnxruntime if it is there."""
    session = ep.Session(path)
    index = [spec.name for spec in session.outputs].index(output) if output else 0
    runners: dict[str, Runner] = {"entrepot": lambda images: list(session.run({name: images}).values())[index]}
    if (elsewhere := _onnxruntime(path)) is not None:
        runners["onnxruntime"] = lambda images: elsewhere({name: images})[index]
    return runners


def _named(arrays: Sequence[np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
    """Names for results that come as a list."""
    return ((f"output {index}", array) for index, array in enumerate(arrays))


def _batches(feeds: dict[str, np.ndarray], sizes: Sequence[int]) -> list[Case]:
    return [Case(f"batch {size}", {name: array[:size] for name, array in feeds.items()}) for size in sizes]


def _tokens(batch: int, length: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    mask = (np.arange(length) < rng.integers(length // 2, length + 1, (batch, 1))).astype(np.int64)
    return {"input_ids": rng.integers(1, 5000, (batch, length)) * mask, "attention_mask": mask}


def _onnxruntime(path: Path) -> Callable[[dict[str, np.ndarray]], list[np.ndarray]] | None:
    """Stock onnxruntime on the file, without any of our code; ``None`` when it is not installed."""
    if importlib.util.find_spec("onnxruntime") is None:
        return None
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return lambda feeds: session.run(None, feeds)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
