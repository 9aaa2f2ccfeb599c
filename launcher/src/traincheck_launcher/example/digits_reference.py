# mypy: ignore-errors
# ruff: noqa: T201
"""Fine-tunes a small network on pictures of handwritten digits.

The convolutions stand for a backbone that was trained before: they are frozen. Batch norm adapts,
and the optimizer trains the new classifier head.
"""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 2


class DigitsNet(nn.Module):
    """Two convolutions with batch norm, and a classifier head."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(32)
        self.head = nn.Linear(32 * 4 * 4, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the scores of the ten digits."""
        hidden = torch.relu(self.norm1(self.conv1(images)))
        hidden = torch.relu(self.norm2(self.conv2(hidden)))
        pooled = nn.functional.max_pool2d(hidden, 2)
        return self.head(pooled.flatten(1))


def freeze_backbone(model: DigitsNet) -> None:
    """Leave batch norm and the head trainable."""
    for name, parameter in model.named_parameters():
        parameter.requires_grad = name.startswith(("norm", "head"))


def load() -> tuple[DataLoader, DataLoader]:
    """Return the digits to train on, and those to test with."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target, dtype=torch.long)
    train = TensorDataset(images[:1440], labels[:1440])
    test = TensorDataset(images[1440:], labels[1440:])
    return DataLoader(train, batch_size=60, shuffle=True), DataLoader(test, batch_size=119)


def accuracy(model: DigitsNet, loader: DataLoader) -> float:
    """Return the share of digits that are recognised."""
    model.eval()
    hits = 0
    with torch.no_grad():
        for images, labels in loader:
            hits += int((model(images).argmax(1) == labels).sum())
    model.train()
    return hits / 357


def main() -> None:
    """Train, and print how it goes."""
    torch.manual_seed(7)
    train_loader, test_loader = load()
    model = DigitsNet()
    optimizer = torch.optim.Adam(model.head.parameters(), lr=0.005)
    freeze_backbone(model)
    step = 0
    for epoch in range(EPOCHS):
        model.train()
        for images, labels in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            if step % 8 == 0:
                print(f"step {step:2d}  loss {loss.item():.4f}")
            step += 1
        print(f"epoch {epoch}  accuracy on the test images {accuracy(model, test_loader):.3f}")


if __name__ == "__main__":
    main()
