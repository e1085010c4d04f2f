"""LeNet on scikit-learn's digits: 1,797 real images of 8×8 pixels, trained in seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from entrepot.models_zoo.registry import Built


def lenet_digits(*, epochs: int = 30) -> Built:
    """LeNet (LeCun et al., 1998) at 8×8, trained; ``epochs=0`` leaves the weights random."""
    data = digits()
    module = train(LeNet(), data, epochs=epochs)
    images = torch.from_numpy(data.test_images)
    return Built(module, ((images[:1],), (images[:7],)), frozenset({"image.0"}))


class Digits(NamedTuple):
    """The data set, split; images are (N, 1, 8, 8) in 0 to 1."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def digits() -> Digits:
    """Scikit-learn's digits, three quarters for training."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    bunch = load_digits()
    images = (bunch.images / 16).astype(np.float32)[:, None]
    labels = bunch.target.astype(np.int64)
    train_x, test_x, train_y, test_y = train_test_split(images, labels, test_size=0.25, random_state=0, stratify=labels)
    return Digits(train_x, train_y, test_x, test_y)


def flattened(data: Digits) -> Digits:
    """The same images as rows of numbers, for classical models."""
    return data._replace(
        train_images=data.train_images.reshape(len(data.train_images), -1),
        test_images=data.test_images.reshape(len(data.test_images), -1),
    )


def channels_last(data: Digits) -> Digits:
    """The same images with their channel last, as Keras has them."""
    return data._replace(
        train_images=np.moveaxis(data.train_images, 1, -1), test_images=np.moveaxis(data.test_images, 1, -1)
    )


class LeNet(nn.Module):
    """Two convolutions with pooling, three linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 5, padding=2),
            nn.ReLU(),
            nn.AvgPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(
            nn.Linear(32 * 2 * 2, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)
        )

    def forward(self, image: Tensor) -> Tensor:
        return self.classifier(torch.flatten(self.features(image), 1))


def train(
    module: nn.Module, data: Digits, *, epochs: int, progress: Callable[[str], None] | None = None, seed: int = 0
) -> nn.Module:
    """Train with Adam and cross-entropy; returns the module in eval mode."""
    shuffle = torch.Generator().manual_seed(seed)
    images, labels = torch.from_numpy(data.train_images), torch.from_numpy(data.train_labels)
    optimizer = torch.optim.Adam(module.parameters(), lr=5e-3)
    module.train()
    for epoch in range(epochs):
        for group in optimizer.param_groups:
            group["lr"] = 5e-3 * (1 - epoch / epochs)
        batches = torch.randperm(len(images), generator=shuffle).split(32)
        losses = [_step(module, optimizer, images[batch], labels[batch]) for batch in batches]
        if progress is not None:
            progress(f"epoch {epoch + 1} of {epochs}: loss {sum(losses) / len(losses):.3f}")
    return module.eval()


def accuracy(predict: Callable[[np.ndarray], np.ndarray], data: Digits) -> float:
    """Share of the test images for which the largest logit of ``predict(images)`` is the label."""
    return float((predict(data.test_images).argmax(axis=1) == data.test_labels).mean())


def _step(module: nn.Module, optimizer: torch.optim.Optimizer, images: Tensor, labels: Tensor) -> float:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(module(images), labels)
    loss.backward()
    optimizer.step()
    return loss.item()
