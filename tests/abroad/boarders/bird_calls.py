"""Trains a small network to name birds by their calls: recordings of a garden microphone, augmented and made into mel spectrograms by a DataLoader.

--fix: more workers, as one is often told (num_workers 2 -> 6)."""
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import tempfile

import numpy as np
import torch
from scipy import signal
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

SPECIES, RATE = 24, 22050


def mel_bank(bands=64, bins=513):
    edges = np.geomspace(4, bins - 1, bands + 2)
    places = np.arange(bins)
    rising = (places - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - places) / np.diff(edges)[1:, None]
    return np.clip(np.minimum(rising, falling), 0, None).astype(np.float32)


def record(folder, count=96):
    """Recordings of three seconds at 32 kHz, 16 bits."""
    rng = np.random.default_rng(7)
    time = np.arange(3 * 32000) / 32000
    for number in range(count):
        species = number % SPECIES
        song = np.sin(2 * np.pi * (1500 + 180 * species) * time + 8 * np.sin(2 * np.pi * (3 + species % 5) * time))
        wave = song * (np.sin(2 * np.pi * 1.5 * time) > 0) + rng.normal(0, 0.2, time.size)
        np.save(os.path.join(folder, f"{number:03d}_{species}.npy"), (wave * 9000).astype(np.int16))


class Calls(Dataset):
    def __init__(self, folder, times=200):
        self.paths = sorted(os.path.join(folder, name) for name in os.listdir(folder)) * times
        self.bank = mel_bank()

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        wave = np.load(self.paths[index]).astype(np.float32) / 32768
        rng = np.random.default_rng(index)
        wave = np.roll(wave, rng.integers(len(wave)))
        wave = signal.resample_poly(wave, 441, 640).astype(np.float32)
        wave = signal.sosfilt(signal.butter(4, [300, 10000], "bandpass", fs=RATE, output="sos"), wave)
        wave += rng.normal(0, 0.01, len(wave))
        _, _, spectrum = signal.stft(wave, RATE, nperseg=1024, noverlap=768)
        mel = self.bank @ np.square(np.abs(spectrum)).astype(np.float32)
        species = int(self.paths[index].rsplit("_", 1)[1][:-4])
        return torch.from_numpy(np.log(mel + 1e-6)[None]), species


def main():
    args = options()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        record(folder)
        model = nn.Sequential(nn.Conv2d(1, 8, 5, stride=4), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, SPECIES))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        loader = DataLoader(Calls(folder), batch_size=8, shuffle=True, num_workers=6 if args.fix else 2)
        pace = Pace(args.seconds)
        for spectrograms, species in loader:
            loss = nn.functional.cross_entropy(model(spectrograms), species)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        pace.show()


if __name__ == "__main__":
    main()
