"""Each worker makes itself a table of spherical weights when it starts."""
import math

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

from pace import Pace, options

TABLE = None


def init_worker(_):
    global TABLE
    rows = []
    for degree in range(1, 120):
        rows.append([math.sin(degree * (k + 1) / 50) / math.lgamma(k + 2.5) for k in range(4000)])
    TABLE = np.array(rows, np.float32)


class Fields(Dataset):
    def __len__(self):
        return 320

    def __getitem__(self, n):
        return TABLE[n % 119, :512] * np.float32(1 + n % 3)


class Experiment:
    def __init__(self, keep):
        self.loader = DataLoader(Fields(), batch_size=8, num_workers=2, worker_init_fn=init_worker, persistent_workers=keep)
        self.net = torch.nn.Sequential(torch.nn.Linear(512, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
        self.optimiser = torch.optim.RMSprop(self.net.parameters())

    def train_one_epoch(self, pace):
        for x in self.loader:
            self.optimiser.zero_grad()
            self.net(x).mean().backward()
            self.optimiser.step()
            if pace.tick():
                return True
        return False


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)
    experiment, pace = Experiment(args.fix), Pace(args.seconds)
    while not experiment.train_one_epoch(pace):
        pass
    pace.show()
