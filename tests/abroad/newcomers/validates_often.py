"""Validates on the whole validation set after every 5th step. --fix: after every 100th."""
import torch
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options


class Digits(Dataset):
    """Noise around ten prototypes, 1x20x20."""

    def __init__(self, count, cheap=False):
        torch.manual_seed(1)
        self.prototypes = torch.rand(10, 1, 20, 20)
        self.count, self.cheap = count, cheap

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        base = self.prototypes[i % 10]
        return (base if self.cheap else base + 0.3 * torch.randn(1, 20, 20)), i % 10


def network():
    return torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Conv2d(8, 16, 3),
                               torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(16 * 49, 10))


@torch.no_grad()
def validate(model, batches):
    model.eval()
    right = total = 0
    for x, y in batches:
        right += (model(x).argmax(1) == y).sum().item()
        total += len(y)
    model.train()
    return right / total


def train(cfg, args):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg["lr"])
    held_out = [(x, y) for x, y in DataLoader(Digits(512), batch_size=64)]     # kept in memory
    pace = Pace(args.seconds)
    for step, (x, y) in enumerate(DataLoader(Digits(10_000_000, args.fix2), batch_size=cfg["batch_size"], num_workers=cfg["workers"])):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % cfg["validate_every"] == 0:
            validate(model, held_out)
        if pace.over():
            break
    pace.report()


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)
    train({"lr": 0.1, "batch_size": 16, "workers": 1, "validate_every": 100 if args.fix else 5}, args)
