"""Two ranks under torchrun (gloo): will a reader click on a headline? Micro-batches are gathered into larger steps.
Started by hand it calls torchrun itself."""
import contextlib
import os
import subprocess
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from pace import Pace, options

MICRO_BATCHES = 8


def make_impressions(count=8192, width=256):
    generator = torch.Generator().manual_seed(17)
    features = torch.randn(count, width, generator=generator)
    clicked = (features[:, :8].sum(1) > 0).float()
    return TensorDataset(features, clicked)


def make_model(width=256, hidden=1536):
    return nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                         nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))


def train(args):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    impressions = make_impressions()
    sampler = DistributedSampler(impressions)
    loader = DataLoader(impressions, batch_size=8, sampler=sampler, drop_last=True)
    model = DistributedDataParallel(make_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    pace, epoch, over = Pace(args.seconds), 0, False
    stop = torch.zeros(1)
    while not stop.item():
        sampler.set_epoch(epoch)
        for i, (features, clicked) in enumerate(loader):
            last = (i + 1) % MICRO_BATCHES == 0
            with model.no_sync() if args.fix and not last else contextlib.nullcontext():
                loss = nn.functional.binary_cross_entropy_with_logits(model(features).squeeze(1), clicked)
                (loss / MICRO_BATCHES).backward()
            over = pace.done() or over
            if last:
                optimizer.step()
                optimizer.zero_grad()
                stop.fill_(float(over))
                dist.broadcast(stop, src=0)
                if stop.item():
                    break
        epoch += 1
    if dist.get_rank() == 0:
        print(f"loss {loss.item():.3f}")
        pace.show()
    dist.destroy_process_group()


def main():
    args = options()
    if "LOCAL_RANK" in os.environ:
        return train(args)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2",
               os.path.abspath(__file__), *sys.argv[1:]]
    return subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}).returncode


if __name__ == "__main__":
    sys.exit(main())
