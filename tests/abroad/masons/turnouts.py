"""Wear of railway turnouts from the currents of their motors: two ranks (torchrun, DDP on gloo), the first keeps a journal of pictures."""
import os
import shutil
import socket
import sys
import tempfile

import numpy as np
import torch
import torch.distributed as dist
from PIL import Image, ImageDraw
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from pace import Pace, options

POINTS = 600


class Throws(Dataset):
    """The current of each throw of a turnout."""

    def __init__(self, path):
        self.currents = np.load(path, mmap_mode="r")

    def __len__(self):
        return 200_000

    def __getitem__(self, number):
        current = torch.tensor(self.currents[number % len(self.currents)])
        return current[None], current[200:400].mean()


def journal_page(folder, step, currents, wear):
    """The batch's curves with their wear, as a picture for the depot."""
    page = Image.new("RGB", (600, 660), "white")
    pen = ImageDraw.Draw(page)
    for row, (current, value) in enumerate(zip(currents[:, 0].tolist(), wear.tolist())):
        middle = 30 + row * 40
        pen.line([(x, middle - 5 * y) for x, y in enumerate(current)], fill=(20, 60, 120))
        pen.text((4, middle - 25), f"throw {row}: {value:.3f}", fill="black")
    page.save(os.path.join(folder, f"page{step % 20}.png"))


def train(asked):
    dist.init_process_group("gloo")
    rank, folder = dist.get_rank(), os.environ["TURNOUTS"]
    torch.set_num_threads(1)
    throws = Throws(os.path.join(folder, "currents.npy"))
    loader = DataLoader(throws, batch_size=16, sampler=DistributedSampler(throws))
    net = nn.Sequential(nn.Conv1d(1, 16, 9, stride=3), nn.ReLU(), nn.Conv1d(16, 16, 9, stride=3), nn.ReLU(), nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(64, 1))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    pace = Pace(asked.seconds)
    every = 100 if asked.fix else 1
    for step, (currents, wear) in enumerate(loader):
        guess = model(currents).squeeze(1)
        loss = nn.functional.mse_loss(guess, wear)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % every == 0:
            journal_page(folder, step, currents, guess.detach())
        over = torch.tensor([float(pace.done())])
        dist.broadcast(over, 0)
        if over.item():
            break
    if rank == 0:
        pace.show()
    dist.destroy_process_group()


def launch():
    from torch.distributed.run import main as torchrun
    folder = os.environ["TURNOUTS"] = tempfile.mkdtemp(prefix="turnouts")
    os.environ["OMP_NUM_THREADS"] = "1"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    try:
        np.save(os.path.join(folder, "currents.npy"), np.random.default_rng(6).normal(size=(500, POINTS)).astype(np.float32))
        torchrun(["--nproc-per-node=2", "--master-addr=127.0.0.1", f"--master-port={port}", os.path.abspath(__file__), *sys.argv[1:]])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    if "RANK" in os.environ:
        train(options())
    else:
        launch()
