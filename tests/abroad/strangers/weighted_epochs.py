"""Draws each epoch by weights, without putting back, among many candidates."""
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from pace import Pace, options


class Pairs(Dataset):
    def __init__(self, count):
        self.values = torch.arange(count, dtype=torch.float32)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, i):
        return self.values[i]


class CurriculumSampler(Sampler):
    """Harder samples come more often; the weights follow the step."""

    def __init__(self, count, draw):
        self.difficulty = np.random.default_rng(0).random(count)
        self.rng, self.draw, self.round = np.random.default_rng(1), draw, 0

    def __iter__(self):
        self.round += 1
        noise = self.rng.gumbel(size=len(self.difficulty))
        keys = noise + np.log(self.difficulty + 1e-9) * min(2.0, self.round / 100)
        yield from np.argsort(-keys)[:self.draw].tolist()

    def __len__(self):
        return self.draw


def main():
    args = options()
    torch.set_num_threads(1)
    count = 60_000 if args.fix else 1_500_000
    loader = DataLoader(Pairs(count), batch_size=32, sampler=CurriculumSampler(count, 3200), num_workers=0)
    net = torch.nn.Sequential(torch.nn.Linear(1, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    optimiser = torch.optim.Adam(net.parameters())
    pace, over = Pace(args.seconds), False
    while not over:
        for x in loader:
            optimiser.zero_grad()
            net(x[:, None] / count).square().mean().backward()
            optimiser.step()
            over = pace.tick()
            if over:
                break
    pace.show()


if __name__ == "__main__":
    main()
