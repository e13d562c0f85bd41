"""Scans of which some take far longer to fetch than the others."""
import time

import torch
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options


class Archive(Dataset):
    """Recent scans are at hand; the old ones come from tape."""

    def __len__(self):
        return 40_000

    def __getitem__(self, n):
        time.sleep(0.28 if n % 41 == 0 else 0.006)
        return torch.full((32, 32), n % 256 / 256), n % 3


def main():
    args = options()
    loader = DataLoader(Archive(), batch_size=4, num_workers=4, in_order=not args.fix)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(1024, 300), torch.nn.ReLU(), torch.nn.Linear(300, 3))
    optimiser = torch.optim.SGD(net.parameters(), lr=0.01)
    pace = Pace(args.seconds)
    for x, y in loader:
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        optimiser.step()
        time.sleep(0.009)        # the device computes
        if pace.tick():
            break
    pace.show()


if __name__ == "__main__":
    main()
