"""Delays of ferry trips: a GRU over the calls of a trip, two ranks with DDP over gloo.

Started plainly it starts itself under torchrun."""
import os
import random
import sys

os.environ["OMP_NUM_THREADS"] = "1"
if __name__ == "__main__" and "RANK" not in os.environ:
    os.execv(sys.executable, [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
                              os.path.abspath(__file__), *sys.argv[1:]])

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

BATCH = 16


class Trips(Dataset):
    """Sorted by the number of calls, the longest first, as the export of the timetable system has them."""

    def __init__(self, count=3200):
        rng = random.Random(11)
        lengths = [rng.randint(140, 160) if n % 2 else rng.randint(6, 10) for n in range(count)]
        self.lengths = sorted(lengths, reverse=True)

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, index):
        calls = torch.randn(self.lengths[index], 12)
        return calls, calls[-1, 0] * 3


class TripBatches:
    """Batches of trips that are about as long as each other; every rank has its part of the batches."""

    def __init__(self, trips, rank, world, strided):
        batches = [list(range(at, at + BATCH)) for at in range(0, len(trips), BATCH)]
        share = len(batches) // world
        self.mine = batches[rank::world] if strided else batches[rank * share:(rank + 1) * share]
        self.epoch = 0

    def __len__(self):
        return len(self.mine)

    def __iter__(self):
        order = list(self.mine)
        random.Random(self.epoch).shuffle(order)
        self.epoch += 1
        return iter(order)


def pad_trips(trips):
    calls, delays = zip(*trips)
    return nn.utils.rnn.pad_sequence(calls, batch_first=True), torch.stack(delays)


class DelayNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(12, 96, batch_first=True)
        self.out = nn.Linear(96, 1)

    def forward(self, calls):
        return self.out(self.gru(calls)[0][:, -1]).squeeze(1)


def train(args):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    trips = Trips()
    loader = DataLoader(trips, batch_sampler=TripBatches(trips, rank, world, args.fix), collate_fn=pad_trips)
    net = DistributedDataParallel(DelayNet())
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    pace, over = Pace(args.seconds), torch.zeros(1)
    while not over.item():
        for calls, delays in loader:
            loss = nn.functional.huber_loss(net(calls), delays)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            over.fill_(pace.done())
            dist.broadcast(over, 0)
            if over.item():
                break
    if rank == 0:
        pace.show()
    dist.destroy_process_group()


if __name__ == "__main__":
    train(options())
