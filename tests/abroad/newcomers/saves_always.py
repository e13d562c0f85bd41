"""Writes a checkpoint of model and optimiser after every second step and syncs it. --fix: after every 100th."""
import os
import tempfile
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options


class Vectors(Dataset):
    def __init__(self, cheap):
        self.cheap = torch.zeros(256) if cheap else None

    def __len__(self):
        return 1 << 30

    def __getitem__(self, i):
        return self.cheap if self.cheap is not None else torch.rand(256)


class CheckpointManager:
    def __init__(self, folder, keep=3):
        self.folder, self.keep, self.saved = Path(folder), keep, []

    def save(self, step, model, optimizer):
        path = self.folder / f"step{step:07d}.pt"
        with open(path, "wb") as file:
            torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
            file.flush()
            os.fsync(file.fileno())
        self.saved.append(path)
        while len(self.saved) > self.keep:
            self.saved.pop(0).unlink()


def main():
    args = options()
    torch.set_num_threads(1)
    autoencoder = torch.nn.Sequential(torch.nn.Linear(256, 1536), torch.nn.ReLU(), torch.nn.Linear(1536, 256))
    optimizer = torch.optim.Adam(autoencoder.parameters())
    every = 100 if args.fix else 2
    pace = Pace(args.seconds)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        manager = CheckpointManager(folder)
        for step, x in enumerate(DataLoader(Vectors(args.fix2), batch_size=32, num_workers=1), 1):
            loss = (autoencoder(x) - x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                manager.save(step, autoencoder, optimizer)
            if pace.over():
                break
    pace.report()


if __name__ == "__main__":
    main()
