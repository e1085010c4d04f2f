import pytest
import torch
from torch import nn

import entrepot as ep


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))
        self.calls = 0

    def forward(self, x):
        self.count += 1
        self.calls += 1
        return x * self.count


class Tally(Counter):
    def forward(self, x):
        self.count += 1
        return x * 2


X = torch.linspace(-1.5, 1.6, 12).reshape(3, 4)  # sums of either sign are near


def refused(error, match, module, sample=X, **how):
    with pytest.raises(error, match=match):
        ep.export(module, sample, **how)


def test_results_that_depend_on_state_are_refused():
    counter = Counter()
    refused(
        ep.ConversionError,
        r"results depend on state that forward changes \(count, calls\).*hint: a graph keeps no state",
        counter,
    )
    assert (counter.count.item(), counter.calls) == (0, 0)


def test_a_number_that_forward_counts_up_is_state_too():
    class Calls(Counter):
        def forward(self, x):
            self.calls += 1
            return x * 2, self.calls

    refused(ep.ConversionError, r"results depend on state that forward changes \(calls\)", Calls())


def test_state_that_no_result_depends_on_is_no_reason_to_refuse():
    assert ep.export(Tally(), X).report.ok


def test_random_results_are_refused_with_operator_and_line():
    refused(
        ep.ConversionError,
        r"results are random.*aten::randn_like at test_refusals\.py:\d+",
        Function(lambda x: x + torch.randn_like(x)),
    )


def test_a_branch_on_values_is_refused_with_the_line_and_a_remedy():
    refused(
        ep.ConversionError,
        r"branches on the values of a tensor at test_refusals\.py:\d+.*torch\.cond",
        Function(lambda x: x * {True: 1, False: 2}[(x.sum() > 0).item()]),
    )


def test_an_operator_without_translation_is_named():
    refused(
        ep.UnsupportedOpError,
        "no ONNX translation for torch operator aten",
        Function(lambda x: torch.linalg.ldl_factor(x)[0]),
        torch.eye(3),
    )


@pytest.mark.parametrize(
    ("module", "sample", "message"),
    [
        (nn.ReLU(), (X, X), "the sample does not fit forward"),
        (nn.Linear(5, 2), X, r"the module does not take the sample: RuntimeError: mat1 and mat2"),
        (nn.Linear(4, 2, device="meta"), X, "value 'weight': the parameter has no values"),
        (nn.LazyLinear(2), X, "a lazy parameter has no shape yet"),
        (nn.ReLU(), X.to(torch.complex64), "value 'input': its dtype is torch.complex64"),
        (nn.ReLU(), X.to_sparse(), "sparse or quantised"),
        (nn.ReLU(), (iter([X]),), r"value 'input': a builtins\.list_iterator cannot be an input"),
        (nn.ReLU(), 3.0, "the sample contains no tensor"),
        (nn.ReLU(), None, "a torch module needs a sample"),
        (Function(torch.fft.fft), X, "forward returns torch.complex64"),
        (Function(lambda _: None), X, "forward returns no tensor"),
    ],
)
def test_what_cannot_be_exported_is_refused_before_any_capture(module, sample, message):
    refused(ep.InputError, message, module, sample)


def test_a_lambda_within_a_literal_is_refused_as_any_function():
    calls = {
        "set": lambda x: torch.tensor(list(set(x.tolist()))),  # TorchScript reads this line alone
    }
    refused(ep.ConversionError, "branches on the values of a tensor", calls["set"], X[0])


def test_a_wrong_translation_does_not_leave(monkeypatch):
    from entrepot.exporters.torch.sources import module as exporter

    def wrong(program):
        graph = real(program)
        next(node for node in graph.graph if node.op_type == "Relu").op_type = "Abs"
        return graph

    real = exporter.translate
    monkeypatch.setattr(exporter, "translate", wrong)
    monkeypatch.setattr(exporter.ModuleSource, "ways", exporter.ModuleSource.ways[:1])
    with pytest.raises(ep.VerificationError, match="does not compute the same") as caught:
        ep.export(nn.ReLU(), X)
    assert not caught.value.report.ok
    assert ep.export(nn.ReLU(), X, verify=False).report is None


def test_a_program_with_an_object_in_its_outputs_is_refused_with_what_to_do():
    class State:
        def __init__(self, x):
            self.x = x

    class Net(nn.Module):
        def forward(self, x):
            return State(x * 2)

    torch.utils._pytree.register_pytree_node(
        State, lambda state: ([state.x], None), lambda parts, _: State(*parts), serialized_type_name="test.State"
    )
    program = torch.export.export(Net(), (X,), strict=False)
    refused(ep.InputError, "objects in the inputs and outputs of an ExportedProgram", program, None)
