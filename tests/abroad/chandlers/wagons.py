"""Finds worn wheels of wagons in trackside vibration, on two ranks with DDP."""
import os
import subprocess
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from pace import Pace, options

SAMPLES = 1024


class Passages(Dataset):
    def __init__(self, count, seed):
        torch.manual_seed(seed)
        self.worn = torch.randint(2, (count,))
        self.signal = torch.randn(count, SAMPLES) * (1 + 0.3 * self.worn[:, None])

    def __len__(self):
        return len(self.worn)

    def __getitem__(self, i):
        return self.signal[i], self.worn[i]


def build_model():
    return nn.Sequential(nn.Unflatten(1, (1, SAMPLES)),
                         nn.Conv1d(1, 8, 9, stride=4), nn.ReLU(), nn.Conv1d(8, 16, 5, stride=4), nn.ReLU(),
                         nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(64, 2))


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    right = seen = 0
    for signal, worn in loader:
        right += (model(signal).argmax(1) == worn).sum().item()
        seen += len(worn)
    model.train()
    return right / seen


def batches(loader, sampler):
    epoch = 0
    while True:
        sampler.set_epoch(epoch)
        yield from loader
        epoch += 1


def train(args):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.set_num_threads(1)
    passages, held_out = Passages(8_192, seed=9), Passages(3_000, seed=10)
    sampler = DistributedSampler(passages)
    loader = DataLoader(passages, batch_size=16, sampler=sampler)
    valid_loader = DataLoader(held_out, batch_size=16)
    model = DistributedDataParallel(build_model())
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    eval_steps = 400 if args.fix else 20
    best, pace, over = 0.0, Pace(args.seconds), torch.zeros(1)
    for step, (signal, worn) in enumerate(batches(loader, sampler), 1):
        loss = nn.functional.cross_entropy(model(signal), worn)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % eval_steps == 0 and rank == 0:
            best = max(best, evaluate(model.module, valid_loader))
        if pace.done():
            over[0] = 1
        if step % 10 == 0:
            dist.broadcast(over, 0)
            if over.item():
                break
    if rank == 0:
        pace.show()
    dist.destroy_process_group()


def launch():
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2",
               os.path.abspath(__file__), *sys.argv[1:]]
    sys.exit(subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}).returncode)


if __name__ == "__main__":
    if "RANK" in os.environ:
        train(options())
    else:
        launch()
