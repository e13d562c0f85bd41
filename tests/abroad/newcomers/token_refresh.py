"""A worker must renew its access every 30th batch, which takes 0.25 s; else it's fast. --fix: prefetch_factor 10 instead of 2 bridges that."""
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from pace import Pace, options


class Credential:
    def __init__(self, uses, seed):
        self.uses, self.left = uses, uses // 2 + seed * 7

    def renew(self):
        time.sleep(0.25)                 # the identity service
        self.left = self.uses

    def use(self):
        if self.left == 0:
            self.renew()
        self.left -= 1


class Archive(IterableDataset):
    def __iter__(self):
        worker = get_worker_info().id
        credential = Credential(30, worker)
        rng = np.random.default_rng(worker)
        while True:
            credential.use()
            time.sleep(0.004)
            yield torch.from_numpy(rng.random((16, 256), dtype=np.float32))


def main():
    args = options()
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(256, 700), torch.nn.ReLU(), torch.nn.Linear(700, 700), torch.nn.ReLU(), torch.nn.Linear(700, 256))
    optimizer = torch.optim.Adam(model.parameters())
    loader = DataLoader(Archive(), batch_size=None, num_workers=2, prefetch_factor=10 if args.fix else 2)
    pace = Pace(args.seconds)
    for x in loader:
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.over():
            break
    pace.report()


if __name__ == "__main__":
    main()
