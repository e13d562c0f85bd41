"""Clips are short but some are long films on slow storage; batches come in order. --fix: in_order=False."""
import time

import torch
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options


class Clips(Dataset):
    """Each index is one batch of clips, as the shards have them."""

    def __init__(self):
        torch.manual_seed(0)
        self.frames = torch.rand(64, 16, 3, 12, 12)

    def __len__(self):
        return 100_000

    def seconds_to_read(self, i):
        return 0.32 if (i * 2654435761 % 2 ** 32) % 24 == 0 else 0.012

    def read(self, i):
        time.sleep(self.seconds_to_read(i))       # what the storage takes
        return self.frames[i % 64]

    def __getitem__(self, i):
        return self.read(i), i % 6


def main():
    args = options()
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Flatten(1), torch.nn.Linear(3 * 12 * 12, 64), torch.nn.ReLU(), torch.nn.Linear(64, 6))
    sgd = torch.optim.SGD(model.parameters(), 0.1)
    loader = DataLoader(Clips(), batch_size=None, shuffle=True, num_workers=4, in_order=not args.fix)
    pace = Pace(args.seconds)
    for clips, label in loader:
        for _ in range(3):
            loss = torch.nn.functional.cross_entropy(model(clips), torch.full((16,), label))
            sgd.zero_grad()
            loss.backward()
            sgd.step()
        if pace.over():
            break
    pace.report()


if __name__ == "__main__":
    main()
