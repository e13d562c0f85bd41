"""Delays at the next 24 stops of a tram from the last 48 readings."""
from collections import defaultdict

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

STOPS, PAST, LINES = 24, 48, 9


class Runs(Dataset):
    def __init__(self, n=6400):
        gen = torch.Generator().manual_seed(3)
        self.series = torch.randn(n, PAST + STOPS, generator=gen).cumsum(1)
        self.line = torch.randint(LINES, (n,), generator=gen)

    def __len__(self):
        return len(self.series)

    def __getitem__(self, i):
        return self.series[i, :PAST], self.series[i, PAST:], self.line[i]


class Diary:
    """Mean and worst error per line and stop, for the table at the end of the epoch."""

    def __init__(self):
        self.total, self.count, self.worst = defaultdict(float), defaultdict(int), defaultdict(float)

    def note(self, guess, truth, line):
        for row in range(guess.shape[0]):
            for stop in range(guess.shape[1]):
                off = (guess[row, stop] - truth[row, stop]).abs().item()
                key = line[row].item(), stop
                self.total[key] += off
                self.count[key] += 1
                self.worst[key] = max(self.worst[key], off)


def main():
    args = options()
    torch.set_num_threads(1)
    extra = dict(num_workers=2, persistent_workers=True, prefetch_factor=4) if args.fix else {}
    loader = DataLoader(Runs(), batch_size=64, shuffle=True, drop_last=True, **extra)
    net = nn.Sequential(nn.Linear(PAST, 128), nn.ReLU(), nn.Linear(128, STOPS))
    adam = torch.optim.Adam(net.parameters(), 1e-3)
    pace, over = Pace(args.seconds), False
    while not over:
        diary = Diary()
        for past, truth, line in loader:
            guess = net(past)
            loss = nn.functional.l1_loss(guess, truth)
            adam.zero_grad()
            loss.backward()
            adam.step()
            diary.note(guess.detach(), truth, line)
            if over := pace.done():
                break
    pace.show()


if __name__ == "__main__":
    main()
