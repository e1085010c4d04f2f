import zipfile

import pytest
import torch
from torch import nn

import entrepot as ep


class Halves(nn.Module):
    """A loop and a branch that TorchScript keeps."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        for _ in range(x.size(0)):
            if bool(x.sum() > 0):
                x = self.fc(x)
            else:
                x = self.fc(x * 0.5)
        return x


@pytest.fixture(scope="module")
def linear():
    torch.manual_seed(0)
    return nn.Linear(4, 2).eval()


@pytest.fixture(scope="module")
def program(linear):
    x = torch.randn(3, 4)
    return torch.export.export(linear, (x,), dynamic_shapes={"input": {0: torch.export.Dim("rows")}})


def test_a_program_keeps_its_axes_and_parameters(program):
    model = ep.export(program)
    assert [str(spec) for spec in model.inputs] == ["input: float32[batch, 4]"]
    assert set(model.ir.graph.initializers) >= {"weight", "bias"}
    assert model.report.ok


def test_a_program_cannot_be_given_other_axes(program):
    with pytest.raises(ep.InputError, match="has the dynamic axes it was captured with"):
        ep.export(program, dynamic={"input": {1: "width"}})


def test_a_program_file_is_exported(program, tmp_path):
    torch.export.save(program, tmp_path / "net.pt2")
    model = ep.export(tmp_path / "net.pt2", torch.randn(2, 4))
    assert [str(spec) for spec in model.outputs] == ["output: float32[batch, 2]"]
    assert ep.verify(tmp_path / "net.pt2", model, torch.randn(2, 4), providers=["cpu"]).ok


@pytest.mark.filterwarnings("ignore:`torch.jit")
def test_a_scripted_file_with_a_loop_and_a_branch_is_exported(tmp_path):
    torch.manual_seed(0)
    torch.jit.script(Halves()).save(tmp_path / "net.pt")
    model = ep.export(tmp_path / "net.pt", torch.randn(2, 4))
    assert [str(spec) for spec in model.inputs] == ["x: float32[batch, 4]"]
    assert {"Loop", "If"} <= {node.op_type for node in model.ir.graph.all_nodes()}
    assert model.report.ok


def test_a_pickle_is_not_opened(linear, tmp_path):
    torch.save(linear, tmp_path / "net.pt")
    with pytest.raises(ep.InputError, match=r"contains pickled objects.*torch\.export\.save"):
        ep.export(tmp_path / "net.pt", torch.randn(2, 4))


def test_what_is_no_archive_or_not_there_is_refused(tmp_path):
    (tmp_path / "net.pt").write_bytes(b"not a zip")
    with pytest.raises(ep.ModelFormatError, match="not a zip archive"):
        ep.export(tmp_path / "net.pt", torch.randn(2, 4))
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        ep.export(tmp_path / "absent.pt2")


def test_a_damaged_archive_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "net.ts", "w") as archive:
        archive.writestr("net/code/__torch__.py", "")
        archive.writestr("net/constants.pkl", "")
    with pytest.raises(ep.ModelFormatError, match="torch cannot read it"):
        ep.export(tmp_path / "net.ts", torch.randn(2, 4))
