"""Predicts a bus's delay at a stop. One epoch is one day's trips; every worker opens the timetable first.

--fix: persistent_workers=True.
"""
import csv
import os
import random
import shutil
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info

from pace import Pace, options

STOPS, TRIPS = 30_000, 640


def write_timetable(path):
    rng = random.Random(8)
    with open(path, "w", newline="") as out:
        rows = csv.writer(out)
        for stop in range(STOPS):
            rows.writerow([f"S{stop}", f"{rng.uniform(47, 48):.5f}", f"{rng.uniform(8, 9):.5f}", rng.randrange(1440)])


class Trips(Dataset):
    """A trip: the last eight stops and how late the bus was at each."""

    def __init__(self, path):
        self.path, self.stops = path, None

    def open_timetable(self):
        self.stops = {}
        with open(self.path, newline="") as rows:
            for name, lat, lon, minute in csv.reader(rows):
                self.stops[name] = (float(lat) - 47, float(lon) - 8, int(minute) / 1440)

    def __len__(self):
        return TRIPS

    def __getitem__(self, i):
        rng = random.Random(i)
        visited = [self.stops[f"S{rng.randrange(STOPS)}"] for _ in range(8)]
        late = [rng.expovariate(0.3) for _ in visited]
        row = [value for stop, wait in zip(visited, late) for value in (*stop, wait)]
        return torch.tensor(row), torch.tensor(sum(late) / 8)


def prepare(worker):
    torch.set_num_threads(1)
    get_worker_info().dataset.open_timetable()


def main():
    args = options()
    folder = tempfile.mkdtemp(prefix="bus_")
    path = os.path.join(folder, "stops.csv")
    write_timetable(path)
    loader = DataLoader(Trips(path), batch_size=32, shuffle=True, num_workers=2, worker_init_fn=prepare,
                        persistent_workers=args.fix)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    pace, day, over = Pace(args.seconds), 0, False
    try:
        while not over:
            for rows, delay in loader:
                loss = nn.functional.l1_loss(model(rows).squeeze(1), delay)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                over = pace.done()
                if over:
                    break
            day += 1
        print(f"{day} days, loss {loss.item():.3f}")
        pace.show()
    finally:
        del loader
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
