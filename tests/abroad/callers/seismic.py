"""First-arrival picking on seismic traces stored in one HDF5 file, read at random."""
import os
import tempfile

import h5py
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

TRACES, SAMPLES = 4096, 1024


def convert_survey(path, chunks):
    rng = np.random.default_rng(2)
    time = np.arange(SAMPLES)
    with h5py.File(path, "w") as survey:
        traces = survey.create_dataset("traces", (TRACES, SAMPLES), "f4", chunks=chunks, compression="gzip",
                                       compression_opts=1)
        picks = rng.integers(50, SAMPLES - 50, TRACES)
        for first in range(0, TRACES, 512):
            block = rng.normal(0, 0.1, (512, SAMPLES))
            after = time[None] >= picks[first:first + 512, None]
            block += after * np.sin(time / 9.0)[None]
            traces[first:first + 512] = np.round(block, 1).astype("f4")
        survey["picks"] = picks.astype("f4") / SAMPLES


class Survey(Dataset):
    def __init__(self, path):
        self.path = path
        self.file = None

    def __len__(self):
        return TRACES

    def __getitem__(self, index):
        if self.file is None:
            self.file = h5py.File(self.path, "r")
        trace = self.file["traces"][index]
        trace = (trace - trace.mean()) / (trace.std() + 1e-6)
        return torch.from_numpy(trace)[None], torch.tensor([self.file["picks"][index]])


class Picker(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(1, 8, 15, stride=8), nn.ReLU(), nn.Conv1d(8, 8, 7, stride=4), nn.ReLU())
        self.head = nn.LazyLinear(1)

    def forward(self, traces):
        return self.head(self.body(traces).flatten(1))


def batches(loader):
    while True:
        yield from loader


def main():
    args = options()
    torch.set_num_threads(1)  # the model is tiny
    with tempfile.TemporaryDirectory(prefix="survey-") as folder:
        path = os.path.join(folder, "line7.h5")
        convert_survey(path, chunks=(1, SAMPLES) if args.fix else (512, SAMPLES))
        loader = DataLoader(Survey(path), batch_size=16, shuffle=True, num_workers=2, persistent_workers=True)
        model = Picker()
        model(torch.zeros(1, 1, SAMPLES))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        pace = Pace(args.seconds)
        for traces, picks in batches(loader):
            loss = nn.functional.l1_loss(model(traces), picks)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        pace.show()
        del loader


if __name__ == "__main__":
    main()
