"""Forecast of the water level from tide-gauge logs, one text file for each station."""
import os
import random
import shutil
import tempfile
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from pace import Pace, options

# the harbour logs every minute, the others hourly
STATIONS = {"harbour": 9600, "island": 128, "lighthouse": 128, "estuary": 128}
POINTS, PAGE = 48, 32


def make_logs(folder):
    rng = random.Random(11)
    paths = []
    for station, rows in STATIONS.items():
        path = os.path.join(folder, station + ".log")
        block = [";".join(f"{min(max(rng.gauss(2, 0.4), 0.1), 9):.3f}m" for _ in range(POINTS)) for _ in range(60)]
        with open(path, "w") as out:
            for i in range(rows):
                out.write(block[i % 60] + "\n")
        paths.append(path)
    return paths


def parse_levels(line):
    return [float(field.rstrip("m")) for field in line.split(";")]


def read_page(path, number, size):
    """A page of a log; the disk is a slow one, over in the harbour office."""
    time.sleep(0.025)
    with open(path) as log:
        log.seek(number * PAGE * size)
        return log.read(PAGE * size).splitlines()


class TideGauges(IterableDataset):
    def __init__(self, paths, by_page):
        self.paths, self.by_page = paths, by_page

    def pages(self):
        for path in self.paths:
            with open(path) as log:
                size = len(log.readline())
            for number in range(os.path.getsize(path) // (size * PAGE)):
                yield path, number, size

    def __iter__(self):
        info = get_worker_info()
        if self.by_page:
            mine = list(self.pages())[info.id::info.num_workers]
        else:
            mine = [page for page in self.pages() if self.paths.index(page[0]) % info.num_workers == info.id]
        for path, number, size in mine:
            for line in read_page(path, number, size):
                levels = torch.tensor(parse_levels(line))
                yield levels[:-1], levels[-1]


def main():
    opts = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="tides")
    try:
        loader = DataLoader(TideGauges(make_logs(folder), opts.fix), batch_size=32, num_workers=4,
                            persistent_workers=True, prefetch_factor=4)
        model = nn.Sequential(nn.Linear(POINTS - 1, 32), nn.Tanh(), nn.Linear(32, 1))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        pace, over = Pace(opts.seconds), False
        while not over:
            for past, level in loader:
                loss = nn.functional.mse_loss(model(past).squeeze(1), level)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                over = pace.done()
                if over:
                    break
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
