import io

import pytest
from rich.console import Console

import entrepot as ep
from entrepot.models_zoo import demo


@pytest.fixture
def tour(tmp_path):
    return demo.Tour(Console(file=io.StringIO(), width=110), tmp_path)


def test_lenet_agrees_everywhere_and_tells_its_accuracy(tour):
    assert tour.lenet()
    printed = tour.console.file.getvalue()
    assert (tour.folder / "lenet.onnx").exists()
    assert printed.count("97.") >= 3
    assert "batch 64" in printed
    assert "differs" not in printed


def test_a_pipeline_agrees_everywhere(tour):
    assert tour.pipeline()
    printed = tour.console.file.getvalue()
    assert (tour.folder / "forest.onnx").exists()
    assert all(name in printed for name in ("scikit-learn", "entrepot", "onnxruntime"))


def test_without_keras_the_tour_says_what_to_install(tour, monkeypatch):
    monkeypatch.setattr(demo.importlib.util, "find_spec", lambda name: None)
    assert tour.keras()
    assert "pip install 'entrepot[tensorflow]'" in tour.console.file.getvalue()


def test_a_module_that_computes_something_else_is_noticed(tour, monkeypatch):
    honest = demo.TorchSource.run
    monkeypatch.setattr(
        demo.TorchSource, "run", lambda self, feeds: {key: value + 0.01 for key, value in honest(self, feeds).items()}
    )
    assert not tour.lenet()


@pytest.mark.parametrize(("third", "code"), [(True, 0), (False, 1)])
def test_exit_code_tells_whether_everything_agreed(third, code, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo.Tour, "lenet", lambda self: True)
    monkeypatch.setattr(demo.Tour, "resnet50", lambda self: True)
    monkeypatch.setattr(demo.Tour, "bert", lambda self: True)
    monkeypatch.setattr(demo.Tour, "pipeline", lambda self: True)
    monkeypatch.setattr(demo.Tour, "keras", lambda self: third)
    assert demo.main([str(tmp_path / "made")]) == code
    assert "What to try next" in capsys.readouterr().out


def test_an_error_is_one_line_and_exit_code_one(tmp_path, monkeypatch, capsys):
    def fails(self):
        raise ep.VerificationError("it does not compute the same", hint="look at [1, 2]")

    monkeypatch.setattr(demo.Tour, "lenet", fails)
    assert demo.main([str(tmp_path)]) == 1
    assert "VerificationError: it does not compute the same (hint: look at [1, 2])" in capsys.readouterr().out
