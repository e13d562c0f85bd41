"""A bag of linear models, each trained for one short round; the workers come from a fork server."""
import multiprocessing

import torch
from torch.utils.data import DataLoader, Dataset, RandomSampler

from pace import Pace, options


class Patients(Dataset):
    def __init__(self):
        g = torch.Generator().manual_seed(0)
        self.x = torch.randn(600, 50, generator=g)
        self.y = (self.x.sum(1) > 0).long()

    def __len__(self):
        return 600

    def __getitem__(self, i):
        return self.x[i].sort().values, self.y[i]


class Bag:
    def __init__(self, data, **loader):
        self.loader = DataLoader(data, sampler=RandomSampler(data, replacement=True), **loader)
        self.models = []

    def round(self):
        model = torch.nn.Linear(50, 2)
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in self.loader:
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimiser.step()
            yield
        self.models.append(model)


def main():
    args = options()
    torch.set_num_threads(1)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "torch.utils.data"])
    bag = Bag(Patients(), batch_size=8, num_workers=2, multiprocessing_context=context, persistent_workers=args.fix)
    pace, over = Pace(args.seconds), False
    while not over:
        for _ in bag.round():
            over = pace.tick()
            if over:
                break
    pace.show()


if __name__ == "__main__":
    main()
