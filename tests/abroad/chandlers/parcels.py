"""Estimates the delivery days of parcels from sender and recipient postcodes."""
import csv
import os
import random
import shutil
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info

from pace import Pace, options

POSTCODES = 90_000


def write_gazetteer(path, rng):
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["postcode", "lat", "lon", "population", "depot"])
        for code in range(POSTCODES):
            out.writerow([f"P{code:06d}", f"{rng.uniform(35, 60):.5f}", f"{rng.uniform(-10, 30):.5f}",
                          rng.randrange(100, 90_000), rng.randrange(40)])


def load_gazetteer(path):
    places = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            places[row["postcode"]] = (float(row["lat"]), float(row["lon"]),
                                       float(row["population"]) / 1e5, float(row["depot"]) / 40)
    return places


class Parcels(Dataset):
    def __init__(self, path, count=3_200):
        rng = random.Random(3)
        self.path = path
        self.places = None
        self.rows = [(f"P{rng.randrange(POSTCODES):06d}", f"P{rng.randrange(POSTCODES):06d}",
                      rng.uniform(0.1, 30.0)) for _ in range(count)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        sender, recipient, weight = self.rows[i]
        a, b = self.places[sender], self.places[recipient]
        km = ((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2) ** 0.5
        x = np.asarray([*a, *b, weight / 30, km / 30], dtype=np.float32)
        return x, np.float32(1 + km / 10)


def worker_init(worker_id):
    dataset = get_worker_info().dataset
    np.random.seed(torch.initial_seed() % 2**32)
    dataset.places = load_gazetteer(dataset.path)


def train(folder, args):
    path = os.path.join(folder, "gazetteer.csv")
    write_gazetteer(path, random.Random(1))
    loader = DataLoader(Parcels(path), batch_size=64, shuffle=True, num_workers=2,
                        worker_init_fn=worker_init, persistent_workers=args.fix)
    model = nn.Sequential(nn.Linear(10, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    pace = Pace(args.seconds)
    while True:
        for x, days in loader:
            loss = nn.functional.smooth_l1_loss(model(x).squeeze(1), days)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                pace.show()
                return


if __name__ == "__main__":
    folder = tempfile.mkdtemp(prefix="parcels-")
    try:
        train(folder, options())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
