"""Next track of a playlist, on two ranks with DistributedDataParallel over gloo (starts torchrun itself)."""
import contextlib
import os
import socket
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from pace import Pace, options

TRACKS, WIDTH = 100_000, 64


class Playlists(Dataset):
    def __init__(self, count=20_000):
        generator = torch.Generator().manual_seed(3)
        self.tracks = torch.randint(TRACKS, (count, 21), generator=generator)

    def __len__(self):
        return len(self.tracks)

    def __getitem__(self, i):
        row = self.tracks[i]
        return row[:-1], row[-1]


class TrackModel(nn.Module):
    """Mean of the tracks' vectors against the next track's and the batch's other ones."""

    def __init__(self):
        super().__init__()
        self.tracks = nn.Embedding(TRACKS, WIDTH)
        self.project = nn.Linear(WIDTH, WIDTH)

    def forward(self, past, following):
        vectors = self.tracks(torch.cat([past, following[:, None]], 1))
        user = self.project(vectors[:, :-1].mean(1))
        return user @ vectors[:, -1].T / WIDTH ** 0.5


def train(opts):
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rank = dist.get_rank()
    data = Playlists()
    loader = DataLoader(data, batch_size=64, sampler=DistributedSampler(data), drop_last=True)
    model = DistributedDataParallel(TrackModel(), gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    accumulate = 8 if opts.fix else 1
    pace, step, over = Pace(opts.seconds), 0, torch.zeros(1)
    while not over:
        for past, following in loader:
            step += 1
            last = step % accumulate == 0
            with contextlib.nullcontext() if last else model.no_sync():
                scores = model(past, following)
                loss = nn.functional.cross_entropy(scores, torch.arange(len(past)))
                (loss / accumulate).backward()
            if last:
                optimizer.step()
                optimizer.zero_grad()
            if pace.done():
                over.fill_(1)
            if last:
                dist.broadcast(over, 0)
                if over:
                    break
    if rank == 0:
        pace.show()
    dist.destroy_process_group()


def main():
    if "RANK" in os.environ:
        train(options())
        return
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.execv(sys.executable, [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_addr",
                              "127.0.0.1", "--master_port", str(port), os.path.abspath(__file__), *sys.argv[1:]])


if __name__ == "__main__":
    main()
