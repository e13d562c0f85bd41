"""Guesses the charge of a quarry's blasts from seismograms of several stations. Records differ in length, so the
collate function hands them over as a list of records; the trainer puts them onto one grid."""
import os
import shutil
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

EVENTS, SAMPLES, GRID = 96, 120_000, 512


class Blasts(Dataset):
    def __init__(self, path):
        self.traces = np.memmap(path, np.float32, "r", shape=(EVENTS, 3, SAMPLES))
        self.lengths = np.random.default_rng(0).integers(SAMPLES // 2, SAMPLES, EVENTS)

    def __len__(self):
        return EVENTS * 40

    def __getitem__(self, i):
        event = i % EVENTS
        return {"event": f"Q{event:04d}", "charge": float(event % 7) + 0.5,
                "trace": np.asarray(self.traces[event, :, :self.lengths[event]])}


def on_grid(records):
    """Every record as GRID samples: its length divided evenly."""
    rows = []
    for record in records:
        trace = record["trace"]
        rows.append(trace[:, ::trace.shape[1] // GRID][:, :GRID].copy())
    return torch.from_numpy(np.stack(rows)), torch.tensor([record["charge"] for record in records])


def as_list(records):
    return records


class Charge(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(3, 8, 9, 4), nn.ReLU(), nn.Conv1d(8, 8, 9, 4), nn.ReLU(),
                                  nn.AdaptiveMaxPool1d(4), nn.Flatten(), nn.Linear(32, 1))

    def forward(self, traces):
        return self.body(traces).squeeze(1)


def train(loader, pace, gridded):
    model = Charge()
    optimizer = torch.optim.SGD(model.parameters(), 1e-4, momentum=0.9)
    while True:
        for records in loader:
            traces, charges = records if gridded else on_grid(records)
            loss = (model(traces) - charges).abs().mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if pace.done():
                return


def main():
    args = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="quarry")
    try:
        path = os.path.join(folder, "traces.f32")
        with open(path, "wb") as f:
            for _ in range(EVENTS):
                f.write(np.random.standard_normal((3, SAMPLES)).astype(np.float32).tobytes())
        loader = DataLoader(Blasts(path), batch_size=32, shuffle=True, num_workers=1,
                            collate_fn=on_grid if args.fix else as_list)
        pace = Pace(args.seconds)
        train(loader, pace, args.fix)
        pace.show()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
