"""Forecasts household power from smart-meter logs (gzipped JSON lines)."""
import glob
import gzip
import itertools
import json
import os
import random
import shutil
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from pace import Pace, options

HOURS, BATCH = 48, 32


def write_logs(folder, files=8, lines=900):
    rng = random.Random(5)
    for number in range(files):
        with gzip.open(os.path.join(folder, f"meters-{number:02d}.jsonl.gz"), "wt", compresslevel=3) as file:
            for line in range(lines):
                base = rng.uniform(0.1, 1.5)
                file.write(json.dumps({
                    "meter": f"M{number}-{line}", "tariff": rng.choice("ABC"),
                    "readings": [{"hour": hour, "kwh": round(base + rng.random(), 4), "ok": rng.random() < 0.98}
                                 for hour in range(HOURS + 1)]}) + "\n")


class MeterLogs(IterableDataset):
    def __init__(self, folder, by_file):
        self.paths = sorted(glob.glob(os.path.join(folder, "*.jsonl.gz")))
        self.by_file = by_file

    def records(self, paths):
        for path in itertools.cycle(paths):
            with gzip.open(path, "rt") as file:
                for line in file:
                    record = json.loads(line)
                    yield [r["kwh"] if r["ok"] else 0.0 for r in record["readings"]]

    def __iter__(self):
        worker = get_worker_info()
        if self.by_file:
            mine = self.records(self.paths[worker.id::worker.num_workers])
        else:   # every worker keeps every n-th record
            mine = itertools.islice(self.records(self.paths), worker.id, None, worker.num_workers)
        while True:
            rows = torch.tensor(list(itertools.islice(mine, BATCH)))
            yield rows[:, :HOURS], rows[:, HOURS]


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(HOURS, 64), nn.GELU(), nn.Linear(64, 1))

    def forward(self, kwh):
        return self.body(kwh).squeeze(1)


def train(folder, args):
    write_logs(folder)
    loader = DataLoader(MeterLogs(folder, args.fix), batch_size=None, num_workers=4)
    model = Forecaster()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    pace = Pace(args.seconds)
    for kwh, target in loader:
        loss = nn.functional.l1_loss(model(kwh), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    folder = tempfile.mkdtemp(prefix="meters-")
    try:
        train(folder, options())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
