from __future__ import annotations

import sys

import pytest

from entrepot.cli.objects import load_object
from entrepot.ir.errors import InputError, MissingDependencyError


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes ``nets.py`` into the current directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    monkeypatch.delitem(sys.modules, "nets", raising=False)

    def make(text):
        (tmp_path / "nets.py").write_text(text)

    yield make
    sys.modules.pop("nets", None)


def test_a_function_or_class_is_called_and_an_object_taken_as_it_is(module):
    module(
        "import functools\ndef build():\n    return 7\nclass Net:\n    def __call__(self):\n        return 'called'\n"
        "net = Net()\nsample = (1, 2)\nmore = functools.partial(int, '5')\nclass box:\n    inner = [3]\n"
    )
    assert load_object("nets:build") == 7
    assert type(load_object("nets:Net")).__name__ == "Net"
    assert type(load_object("nets:net")).__name__ == "Net"
    assert load_object("nets:sample") == (1, 2)
    assert load_object("nets:more") == 5
    assert load_object("nets:box.inner") == [3]


def test_a_function_that_takes_arguments_is_the_object_itself(module):
    module(
        "import functools\ndef double(x):\n    return 2 * x\ndef scaled(x, by=3):\n    return by * x\n"
        "class Net:\n    def forward(self, x):\n        return x\nnet = Net()\nless = functools.partial(scaled, by=2)\n"
    )
    assert load_object("nets:double")(4) == 8
    assert load_object("nets:scaled")(4) == 12
    assert load_object("nets:less")(4) == 8
    assert load_object("nets:net.forward")(4) == 4


def test_the_module_and_the_attribute_must_exist(module):
    module("def build():\n    return 7\n")
    with pytest.raises(InputError, match=r"no module named 'nots'.*current directory"):
        load_object("nots:build")
    with pytest.raises(InputError, match=r"has no 'bild'.*it has build"):
        load_object("nets:bild")
    with pytest.raises(InputError, match=r"package\.module:attribute"):
        load_object("nets")


def test_a_package_the_module_needs_is_a_missing_dependency(module):
    module("import surely_not_installed.part\n")
    with pytest.raises(MissingDependencyError, match=r"needs 'surely_not_installed'"):
        load_object("nets:build")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def build():\n    return 1 / 0\n", r"nets.py:2.*calling nets:build raised ZeroDivisionError"),
        ("x = undefined\n", r"nets.py:1.*importing nets raised NameError"),
        ("def build(:\n", r"importing nets raised SyntaxError"),
        ("raise SystemExit(3)\n", r"raised SystemExit: 3"),
    ],
)
def test_what_the_users_code_raises_is_told_with_its_place(module, text, message):
    module(text)
    with pytest.raises(InputError, match=message):
        load_object("nets:build")
