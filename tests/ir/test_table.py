from __future__ import annotations

import sys

import pytest

from entrepot.ir.errors import UnsupportedOpError
from entrepot.ir.table import OpKey, OpTable


def table() -> OpTable:
    made: OpTable = OpTable("test kernel")
    made("Relu", 14)(lambda x: x)
    made("Reshape", 25, constants={"shape"})(lambda x, shape: x)
    made("Gelu", 1, domain="com.microsoft")(lambda x: x)
    return made


def test_an_entry_is_found_by_its_exact_version_only() -> None:
    entries = table()
    assert entries.find("", "Relu", 14) is not None
    assert entries.find("", "Relu", 13) is None
    assert entries.find("", "Relu", 15) is None
    assert entries.find("com.microsoft", "Relu", 14) is None
    assert entries.get("com.microsoft", "Gelu", 1).function(3) == 3


def test_a_missing_entry_says_which_versions_there_are() -> None:
    with pytest.raises(UnsupportedOpError, match=r"no test kernel for ai.onnx::Relu version 13; registered: \[14\]"):
        table().get("", "Relu", 13)
    with pytest.raises(UnsupportedOpError, match="registered: none"):
        table().get("", "Nothing", 1)


def test_an_entry_declares_the_inputs_it_needs_as_constants() -> None:
    assert table().get("", "Reshape", 25).constants == frozenset({"shape"})
    assert table().get("", "Relu", 14).constants == frozenset()


def test_two_entries_for_one_operator_are_an_error() -> None:
    entries = table()
    with pytest.raises(ValueError, match="two test kernels"):
        entries("Relu", 14)(lambda x: x)


def test_a_table_lists_its_keys_in_order() -> None:
    assert list(table()) == [OpKey("", "Relu", 14), OpKey("", "Reshape", 25), OpKey("com.microsoft", "Gelu", 1)]
    assert len(table()) == 3


def test_a_table_fills_itself_at_the_first_look_up(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "filled_by_itself"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from entrepot.ir.table import OpTable\nTABLE = OpTable('t', packages=(__name__,))"
    )
    (package / "family.py").write_text(
        "import filled_by_itself as p\np.TABLE('Relu', 14)(abs)\nassert len(p.TABLE) == 1"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import filled_by_itself  # type: ignore[import-not-found]

    assert "filled_by_itself.family" not in sys.modules
    assert filled_by_itself.TABLE.get("", "Relu", 14).function is abs
    assert "filled_by_itself.family" in sys.modules
