import dataclasses

import pytest
import torch
from torch.utils import _pytree as pytree

from entrepot import models_zoo

NAMES = models_zoo.names("torch")


def call(module, sample):
    with torch.no_grad():
        return module(**sample) if isinstance(sample, dict) else module(*sample)


def leaves(tree):
    if dataclasses.is_dataclass(tree):
        tree = [getattr(tree, field.name) for field in dataclasses.fields(tree)]
    return pytree.tree_leaves(tree)


def bound(model, sample):
    """Inputs by the names that ``dynamic`` uses."""
    import inspect

    arguments = inspect.signature(model.module.forward).bind
    named = (arguments(**sample) if isinstance(sample, dict) else arguments(*sample)).arguments
    flat = {}
    for name, value in named.items():
        flat |= {f"{name}.{key}": item for key, item in value.items()} if isinstance(value, dict) else {name: value}
    return flat


@pytest.fixture(scope="module", params=NAMES)
def model(request):
    return models_zoo.build(request.param)


def test_samples_start_at_batch_one_and_run(model):
    sizes = [next(iter(bound(model, sample).values())).shape[0] for sample in model.samples]
    assert sizes[0] == 1
    assert max(sizes) > 1
    for sample in model.samples:
        outputs = leaves(call(model.module, sample))
        assert outputs
        for output in outputs:
            assert torch.isfinite(output).all()
            assert output.numel() == 1 or output.unique().numel() > 1, "an output that is constant proves nothing"


def test_it_runs_at_another_batch_size(model):
    sample = pytree.tree_map(lambda tensor: torch.cat([tensor, tensor[:1]]), model.samples[-1])
    small, large = leaves(call(model.module, model.samples[-1])), leaves(call(model.module, sample))
    assert [other.shape[:1] for other in large] == [tuple(n + 1 for n in one.shape[:1]) for one in small]
    assert any(one.ndim for one in small)


def test_the_dynamic_axes_named_are_axes_of_inputs(model):
    inputs = bound(model, model.sample)
    for axis in model.dynamic:
        name, _, index = axis.rpartition(".")
        assert int(index) < inputs[name].ndim
    assert any(axis.endswith(".0") for axis in model.dynamic)


def test_it_is_in_eval_mode_with_finite_weights(model):
    assert not any(module.training for module in model.module.modules())
    assert all(torch.isfinite(tensor).all() for tensor in model.module.state_dict().values())


NORMALIZED = {
    "resnet18",
    "resnet50",
    "mobilenet_v2",
    "efficientnet",
    "densenet",
    "unet",
    "dilated_segmentation",
    "dcgan_generator",
    "pointnet",
}


def test_batch_norms_have_statistics_that_matter(model):
    norms = [m for m in model.module.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    assert bool(norms) == (model.name in NORMALIZED)
    for norm in norms:
        assert norm.running_mean.abs().max() > 1e-4
        assert (norm.weight - 1).abs().max() > 1e-2
        assert norm.momentum == 0.1
        assert "restore" not in vars(norm)


@pytest.mark.parametrize("name", NAMES)
def test_building_twice_gives_the_same_and_leaves_the_random_state_alone(name):
    before = torch.random.get_rng_state()
    parameters = {"epochs": 1} if name == "lenet_digits" else {}
    one = models_zoo.build(name, **parameters)
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.rand(3)
    other = models_zoo.build(name, **parameters)
    for key, tensor in one.module.state_dict().items():
        assert torch.equal(tensor, other.module.state_dict()[key]), key
    for a, b in zip(pytree.tree_leaves(one.samples), pytree.tree_leaves(other.samples), strict=True):
        assert torch.equal(a, b)


def test_parameters_reach_the_builder():
    assert models_zoo.build("mlp", classes=3).module.layers[-1].out_features == 3
    bert = models_zoo.build("bert", vocabulary=100, width=32, layers=1, heads=2).module
    assert len(bert.layers) == 1


def test_resnet50_has_the_true_number_of_parameters():
    module = models_zoo.build("resnet50").module
    assert sum(parameter.numel() for parameter in module.parameters()) == 25_557_032


def test_resnet18_has_the_true_number_of_parameters():
    module = models_zoo.build("resnet18", classes=1000).module
    assert sum(parameter.numel() for parameter in module.parameters()) == 11_689_512


def test_both_branches_of_the_conditional_model_are_taken_by_its_samples():
    model = models_zoo.build("early_exit")
    taken = [bool(sample[0].abs().mean() < 0.5) for sample in model.samples]
    assert set(taken) == {True, False}


def test_lenet_has_learnt_the_digits():
    from entrepot.models_zoo.torch.lenet_digits import accuracy, digits

    module = models_zoo.build("lenet_digits").module
    assert accuracy(lambda images: call(module, (torch.from_numpy(images),)).numpy(), digits()) > 0.95
