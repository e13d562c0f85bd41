"""Trains a wide network on the CPU, started as torchrun starts its ranks (OMP_NUM_THREADS=1)."""
import os

import torch
from torch.utils.data import DataLoader, Dataset

from meter import Meter, arguments


class Table(Dataset):
    def __init__(self):
        self.x = torch.randn(8192, 512)

    def __len__(self):
        return 10_000_000

    def __getitem__(self, index):
        return self.x[index % 8192] * 0.5


def main():
    args = arguments()
    torch.set_num_threads(2 if args.fix else int(os.environ.get("OMP_NUM_THREADS", 1)))
    model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 2048),
                                torch.nn.GELU(), torch.nn.Linear(2048, 512))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.001)
    loader = DataLoader(Table(), batch_size=128, num_workers=1, prefetch_factor=4)
    meter = Meter(args.seconds)
    for batch in loader:
        optimiser.zero_grad()
        (model(batch) - batch).square().mean().backward()
        optimiser.step()
        if meter.tick():
            break
    meter.show()


if __name__ == "__main__":
    main()
