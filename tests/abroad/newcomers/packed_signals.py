"""Each recording is unpacked by a gzip process that the worker starts and reads from. --fix: two workers instead of one."""
import gzip
import os
import subprocess
import tempfile

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

SAMPLES = 700_000


def record(folder, count=6):
    rng = np.random.default_rng(0)
    names = []
    for i in range(count):
        wave = (np.cumsum(rng.integers(-3, 4, SAMPLES)) % 4096).astype(np.int16)
        names.append(os.path.join(folder, f"{i}.raw.gz"))
        with gzip.open(names[-1], "wb", compresslevel=1) as file:
            file.write(wave.tobytes())
    return names


def unpack(name):
    process = subprocess.Popen(["gzip", "-dc", name], stdout=subprocess.PIPE)
    data, _ = process.communicate()
    if process.returncode:
        raise OSError(f"gzip could not unpack {name}")
    return np.frombuffer(data, np.int16)


class Signals(Dataset):
    def __init__(self, names):
        self.names = names

    def __len__(self):
        return 100_000

    def __getitem__(self, i):
        wave = unpack(self.names[i % len(self.names)])
        at = (i * 1237) % (SAMPLES - 2048)
        return torch.from_numpy(wave[at:at + 2048].astype(np.float32) / 4096)


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        signals = Signals(record(folder))
        net = torch.nn.Sequential(torch.nn.Conv1d(1, 8, 9, stride=4), torch.nn.ReLU(), torch.nn.Conv1d(8, 8, 9, stride=4), torch.nn.AdaptiveAvgPool1d(1))
        opt = torch.optim.Adam(net.parameters())
        pace = Pace(args.seconds)
        for waves in DataLoader(signals, batch_size=4, num_workers=2 if args.fix else 1):
            opt.zero_grad()
            net(waves.unsqueeze(1)).square().mean().backward()
            opt.step()
            if pace.over():
                break
    pace.report()
