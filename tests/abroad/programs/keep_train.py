"""Trains, and every few steps writes the metrics and the model to disk."""
import json
import os
import shutil
import tempfile

import torch
from torch.utils.data import DataLoader, Dataset

from meter import Meter, arguments


class Points(Dataset):
    def __init__(self):
        self.x = torch.randn(4096, 512)

    def __len__(self):
        return 10_000_000

    def __getitem__(self, index):
        return self.x[index % 4096] * 1.01


def save(folder, model, optimiser, step, loss):
    path = os.path.join(folder, "last.pt")
    with open(path + ".tmp", "wb") as file:
        torch.save({"model": model.state_dict(), "optimiser": optimiser.state_dict(), "step": step}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".tmp", path)
    with open(os.path.join(folder, "metrics.jsonl"), "a") as file:
        file.write(json.dumps({"step": step, "loss": loss}) + "\n")


def main():
    args = arguments()
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(512, 768), torch.nn.ReLU(), torch.nn.Linear(768, 512))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    loader = DataLoader(Points(), batch_size=32, num_workers=1)
    every = 100 if args.fix else 3
    meter = Meter(args.seconds)
    folder = tempfile.mkdtemp(dir="/var/tmp")  # on a disk
    for step, batch in enumerate(loader):
        optimiser.zero_grad()
        loss = (model(batch) - batch).square().mean()
        loss.backward()
        optimiser.step()
        if step % every == 0:
            save(folder, model, optimiser, step, loss.item())
        if meter.tick():
            break
    shutil.rmtree(folder)
    meter.show()


if __name__ == "__main__":
    main()
