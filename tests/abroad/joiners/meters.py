"""Load forecast for a power grid's substations, from the meters' export (one JSON line a reading)."""
import json
import os
import random
import shutil
import tempfile
from datetime import datetime, timedelta

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from pace import Pace, options

WINDOW = 48
FORMAT = "%d.%m.%Y %H:%M:%S"


def write_exports(folder, files=8, readings=9000):
    rng = random.Random(4)
    for n in range(files):
        when = datetime(2024, 1 + n, 1)
        with open(os.path.join(folder, f"substation_{n:02}.jsonl"), "w") as out:
            for _ in range(readings):
                when += timedelta(minutes=5)
                later = when + timedelta(seconds=rng.randrange(60))
                load = 40 + 15 * (7 < when.hour < 21) + rng.gauss(0, 3)
                out.write(json.dumps({"at": when.strftime(FORMAT), "received": later.strftime(FORMAT), "mw": round(load, 2),
                                      "kv": round(rng.gauss(110, 1), 2), "hz": round(rng.gauss(50, .02), 3)}) + "\n")


def by_format(text):
    return datetime.strptime(text, FORMAT)


def by_position(text):
    return datetime(int(text[6:10]), int(text[3:5]), int(text[:2]), int(text[11:13]), int(text[14:16]), int(text[17:]))


class Readings(IterableDataset):
    """Windows of readings, substation after substation; each worker takes its own."""

    def __init__(self, folder, clock):
        self.clock = clock
        self.paths = sorted(os.path.join(folder, name) for name in os.listdir(folder))

    def features(self, line):
        row = json.loads(line)
        at, received = self.clock(row["at"]), self.clock(row["received"])
        return [(received - at).seconds / 60, row["mw"] / 50, row["kv"] / 110, (row["hz"] - 50) * 20,
                (at.hour + at.minute / 60) / 24, at.weekday() / 7]

    def __iter__(self):
        info = get_worker_info()
        paths = self.paths[info.id::info.num_workers] if info else self.paths
        while True:
            for path in paths:
                with open(path) as lines:
                    window = []
                    for line in lines:
                        window.append(self.features(line))
                        if len(window) == WINDOW + 1:
                            yield torch.tensor(window[:-1]), torch.tensor(window[-1][1])
                            window = []


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(WINDOW * 6, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, window):
        return self.layers(window).squeeze(1)


def main():
    opts = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="meters")
    try:
        write_exports(folder)
        readings = Readings(folder, clock=by_position if opts.fix else by_format)
        loader = DataLoader(readings, batch_size=32, num_workers=1)
        model = Forecast()
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        pace = Pace(opts.seconds)
        for window, load in loader:
            loss = nn.functional.huber_loss(model(window), load)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        print(f"loss {loss.item():.4f}")
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
