"""A small network in the manner of AlphaZero: which of the sides wins from this position?"""
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

PIECES = "PNBRQKpnbrqk"


def random_position(rng):
    """The board's part of a FEN record."""
    rows = []
    for _ in range(8):
        row, empty = "", 0
        for _ in range(8):
            if rng.random() < 0.6:
                empty += 1
                continue
            row += (str(empty) if empty else "") + rng.choice(PIECES)
            empty = 0
        rows.append(row + (str(empty) if empty else ""))
    return "/".join(rows)


class Positions(Dataset):
    def __init__(self, count=4096):
        rng = random.Random(1)
        self.records = [random_position(rng) for _ in range(count)]

    def __len__(self):
        return len(self.records)

    def __getitem__(self, index):
        planes, balance = torch.zeros(12, 8, 8), 0
        for rank, row in enumerate(self.records[index].split("/")):
            file = 0
            for sign in row:
                if sign.isdigit():
                    file += int(sign)
                else:
                    planes[PIECES.index(sign), rank, file] = 1.0
                    balance += 1 if sign.isupper() else -1
                    file += 1
        return planes, float(balance > 0)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.one = nn.Conv2d(width, width, 3, padding=1)
        self.two = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, planes):
        return torch.relu(planes + self.two(torch.relu(self.one(planes))))


class Network(nn.Module):
    def __init__(self, width=64, blocks=5):
        super().__init__()
        self.stem = nn.Conv2d(12, width, 3, padding=1)
        self.tower = nn.Sequential(*(Block(width) for _ in range(blocks)))
        self.value = nn.Linear(width * 64, 1)

    def forward(self, planes):
        return self.value(self.tower(torch.relu(self.stem(planes))).flatten(1)).squeeze(1)


def endless(loader):
    while True:
        yield from loader


def main():
    args = options()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    more = {"num_workers": 2, "prefetch_factor": 8} if args.fix else {"num_workers": 1}
    loader = DataLoader(Positions(), batch_size=64, shuffle=True, drop_last=True, persistent_workers=True, **more)
    network, loss_of = Network(), nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    pace = Pace(args.seconds)
    for planes, white in endless(loader):
        loss = loss_of(network(planes), white.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    main()
