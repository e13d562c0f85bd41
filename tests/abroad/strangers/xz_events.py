"""Events from a compressed archive that `xz -dc` unpacks into a pipe."""
import os
import subprocess
import tempfile

import numpy as np
import torch
from torch.utils.data import IterableDataset

from pace import options, timed

EVENT = np.dtype([("time", "<u4"), ("kind", "u1"), ("value", "<f4"), ("pad", "u1", 7)])


def make(path, packed):
    rng = np.random.default_rng(1)
    events = np.zeros(200_000, EVENT)
    events["time"] = np.cumsum(rng.integers(0, 30, len(events)))
    events["kind"] = rng.integers(0, 20, len(events))
    events["value"] = rng.normal(size=len(events))
    events.tofile(path)
    if packed:
        subprocess.run(["xz", "-1", path], check=True)


class Events(IterableDataset):
    def __init__(self, command, batch):
        self.command, self.batch = command, batch * EVENT.itemsize

    def __iter__(self):
        while True:
            with subprocess.Popen(self.command, stdout=subprocess.PIPE) as child:
                try:
                    while len(data := child.stdout.read(self.batch)) == self.batch:
                        yield np.frombuffer(data, EVENT)
                finally:
                    child.kill()


def main():
    args = options()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "events.bin")
        make(path, packed=not args.fix)
        command = ["cat", path] if args.fix else ["xz", "-dc", path + ".xz"]
        weights = torch.zeros(20, dtype=torch.float64)
        for events in timed(Events(command, 8192), args.seconds):
            sums = np.bincount(events["kind"], events["value"], 20)
            weights = 0.99 * weights + 0.01 * torch.from_numpy(sums)


if __name__ == "__main__":
    main()
