import subprocess
import sys

import pytest

from entrepot import models_zoo


def test_listing_the_models_imports_no_framework():
    code = (
        "import sys; from entrepot import models_zoo; assert len(models_zoo.names()) > 20;"
        "print([name for name in ('torch', 'sklearn', 'onnx', 'numpy') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_names_are_unique_and_selected_by_task():
    names = models_zoo.names()
    assert len(set(names)) == len(names)
    assert models_zoo.names(task="control-flow") == ["early_exit", "fixed_point"]


def test_an_unknown_model_is_refused_with_the_names_there_are():
    with pytest.raises(KeyError, match=r"no torch model 'lenet_5'.*lenet_digits"):
        models_zoo.build("lenet_5")


def test_an_unknown_framework_is_refused_with_those_there_are():
    with pytest.raises(KeyError, match=r"'caffe'.*torch"):
        models_zoo.names("caffe")
