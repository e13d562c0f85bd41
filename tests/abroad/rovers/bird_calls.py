"""Which bird is calling? 44.1 kHz field recordings -> 16 kHz -> log spectrogram -> small CNN.

--fix writes the spectrograms to disk once before the training.
"""
import pathlib
import shutil
import tempfile

import numpy as np
import torch
from scipy import signal
from scipy.io import wavfile
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

RATE, TARGET = 44_100, 16_000
SPECIES = ("wren", "robin", "blackcap")


def record(folder, count=72):
    rng = np.random.default_rng(2)
    for n in range(count):
        kind = n % len(SPECIES)
        seconds = np.arange(int(RATE * 3.3) + int(rng.integers(0, 999))) / RATE
        chirp = np.sin(2 * np.pi * (2000 + 900 * kind) * seconds + 9 * np.sin(seconds * 30))
        noisy = chirp * 8000 + rng.normal(0, 1500, len(seconds))
        wavfile.write(folder / f"{n:03d}_{SPECIES[kind]}.wav", RATE, noisy.astype(np.int16))


def spectrogram(path):
    rate, wave = wavfile.read(path)
    wave = wave.astype(np.float64) / 32768
    wave = signal.resample(wave, int(len(wave) * TARGET / rate))
    _, _, spec = signal.stft(wave, TARGET, nperseg=512, noverlap=512 - 80)
    image = np.log1p(100 * np.abs(spec)).astype(np.float32)
    return image[:256, :640]


class Recordings(Dataset):
    def __init__(self, folder):
        self.paths = sorted(folder.glob("*.wav"))

    def __len__(self):
        return len(self.paths)

    def label(self, path):
        return SPECIES.index(path.stem.split("_")[1])

    def __getitem__(self, i):
        path = self.paths[i]
        return torch.from_numpy(spectrogram(path)[None]), self.label(path)


class Spectrograms(Recordings):
    def __init__(self, folder):
        super().__init__(folder)
        for path in self.paths:
            np.save(path.with_suffix(".npy"), spectrogram(path))

    def __getitem__(self, i):
        path = self.paths[i]
        return torch.from_numpy(np.load(path.with_suffix(".npy"))[None]), self.label(path)


def main():
    args = options()
    torch.set_num_threads(1)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="birds"))
    try:
        record(folder)
        dataset = Spectrograms(folder) if args.fix else Recordings(folder)
        loader = DataLoader(dataset, batch_size=8, shuffle=True, num_workers=2, persistent_workers=True, drop_last=True)
        model = nn.Sequential(nn.AvgPool2d(8), nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3),
                              nn.ReLU(), nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(16, len(SPECIES)))
        optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
        pace, over = Pace(args.seconds), False
        while not over:
            for spectra, species in loader:
                loss = nn.functional.cross_entropy(model(spectra), species)
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
