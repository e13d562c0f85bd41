"""Predicts organic carbon from near-infrared soil spectra kept in one HDF5 file.

The lab's export script writes the file with h5py's gzip filter; --fix exports it with one spectrum per chunk,
as the training reads them in random order.
"""
import os
import shutil
import tempfile

import h5py
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

SPECTRA, BANDS = 6000, 1024


def export(path, per_chunk):
    rng = np.random.default_rng(11)
    carbon = rng.gamma(2.0, 1.5, SPECTRA).astype("float32")
    slope = np.linspace(0.2, 0.6, BANDS, dtype="float32")
    with h5py.File(path, "w") as out:
        out["carbon"] = carbon
        spectra = out.create_dataset("reflectance", (SPECTRA, BANDS), "float32", chunks=(per_chunk, BANDS),
                                     compression="gzip", compression_opts=4)
        for lo in range(0, SPECTRA, 500):
            part = slope - 0.02 * carbon[lo:lo + 500, None]
            spectra[lo:lo + 500] = np.round(part + rng.normal(0, 0.01, (len(part), BANDS)), 3)


class SoilSpectra(Dataset):
    def __init__(self, path):
        self.path, self.file = path, None

    def __len__(self):
        return SPECTRA

    def __getitem__(self, i):
        if self.file is None:
            self.file = h5py.File(self.path, "r")
        reflectance = self.file["reflectance"][i]
        reflectance = (reflectance - reflectance.mean()) / (reflectance.std() + 1e-6)
        return torch.from_numpy(reflectance), torch.tensor(self.file["carbon"][i])


def main():
    args = options()
    folder = tempfile.mkdtemp(prefix="soil_")
    path = os.path.join(folder, "spectra.h5")
    export(path, per_chunk=1 if args.fix else 250)
    model = nn.Sequential(nn.Linear(BANDS, 128), nn.ReLU(), nn.Linear(128, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(SoilSpectra(path), batch_size=32, shuffle=True, num_workers=2, persistent_workers=True)
    pace, over = Pace(args.seconds), False
    try:
        while not over:
            for reflectance, carbon in loader:
                loss = nn.functional.mse_loss(model(reflectance).squeeze(1), carbon)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                over = pace.done()
                if over:
                    break
        pace.show()
    finally:
        del loader
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
