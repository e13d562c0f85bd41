"""Rows of a gzipped HDF5 table, drawn at random by one loader worker. --fix: the table was written with chunks of 8 rows in place of 2048."""
import os
import tempfile

import h5py
import numpy as np
import torch

from pace import Pace, options

ROWS, WIDTH = 16384, 96


def write(path, rows):
    rng = np.random.default_rng(0)
    table = np.round(rng.normal(size=(ROWS, WIDTH)), 2).astype(np.float32)
    with h5py.File(path, "w") as out:
        out.create_dataset("expression", data=table, chunks=(rows, WIDTH), compression="gzip", compression_opts=1)


class Expression(torch.utils.data.Dataset):
    def __init__(self, path):
        self.path, self.table = path, None

    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        if self.table is None:
            self.table = h5py.File(self.path, "r", rdcc_nbytes=1 << 20)["expression"]
        return torch.from_numpy(self.table[index])


def endless(loader):
    while True:
        yield from loader


def main():
    args = options()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cells.h5")
        write(path, 8 if args.fix else 2048)
        loader = torch.utils.data.DataLoader(Expression(path), batch_size=16, shuffle=True, num_workers=1, persistent_workers=True)
        encoder = torch.nn.Sequential(torch.nn.Linear(WIDTH, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
        decoder = torch.nn.Linear(10, WIDTH)
        optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])
        pace = Pace(args.seconds)
        for cells in endless(loader):
            loss = (decoder(encoder(cells)) - cells).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        pace.show()
        del loader


if __name__ == "__main__":
    main()
