"""Two ranks under torchrun learn from clips of two cameras, telephones' short ones and a drone's long ones; gloo adds up the gradients.

--fix: each rank takes every second clip, not one half of the list."""
import os
import subprocess
import sys

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, Subset

from pace import Pace, options

SIDE = 96


class Clips(Dataset):
    """First all of the telephones, then all of the drone."""

    def __init__(self, count=8000):
        rng = np.random.default_rng(21)
        self.frames = [6] * (count // 2) + [60] * (count // 2)
        self.footage = rng.integers(0, 255, (64, SIDE, SIDE), np.uint8)

    def __len__(self):
        return len(self.frames)

    def __getitem__(self, index):
        before, motion = None, np.zeros((SIDE, SIDE), np.float32)
        for frame in range(self.frames[index]):
            picture = np.roll(self.footage[(index + frame) % 64], frame, 1).astype(np.float32)
            spectrum = np.fft.rfft2(picture)
            if before is not None:
                cross = spectrum * before.conj()
                motion += np.fft.irfft2(cross / (np.abs(cross) + 1e-6)).astype(np.float32)
            before = spectrum
        return torch.from_numpy(motion[None] / self.frames[index]), index % 7


def train(args):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    clips = Clips()
    half = len(clips) // ranks
    mine = range(rank, len(clips), ranks) if args.fix else range(rank * half, (rank + 1) * half)
    loader = DataLoader(Subset(clips, list(mine)), batch_size=4, shuffle=True, num_workers=1)
    model = DistributedDataParallel(nn.Sequential(nn.Conv2d(1, 8, 7, stride=4), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 7)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    pace = Pace(args.seconds)
    for motion, action in loader:
        loss = nn.functional.cross_entropy(model(motion), action)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        over = torch.tensor([float(pace.done())])
        dist.broadcast(over, 0)
        if over.item():
            break
    if rank == 0:
        pace.show()
    dist.destroy_process_group()


def main():
    args = options()
    if "LOCAL_RANK" in os.environ:
        train(args)
        return
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(subprocess.call([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", os.path.abspath(__file__)] + sys.argv[1:]))


if __name__ == "__main__":
    main()
