"""Which night bird calls: band-passed spectrograms of short recordings."""
import numpy as np
import torch
from scipy import signal
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

RATE, LONG, KINDS = 22050, 33075, 12
EDGES = np.unique(np.geomspace(3, 250, 41).astype(int))


class Calls(Dataset):
    def __init__(self, n=640):
        rng = np.random.default_rng(5)
        self.tape = rng.normal(0, 3000, 2_000_000).astype(np.int16)
        self.start = rng.integers(0, len(self.tape) - LONG, n)
        self.kind = rng.integers(0, KINDS, n)
        self.band = signal.butter(6, (300, 8000), "bandpass", fs=RATE, output="sos")

    def __len__(self):
        return len(self.start)

    def __getitem__(self, i):
        wave = self.tape[self.start[i]:self.start[i] + LONG].astype(np.float64) / 32768
        wave = signal.sosfilt(self.band, wave)
        _, _, power = signal.spectrogram(wave, RATE, nperseg=512, noverlap=384)
        bands = np.log1p(np.add.reduceat(power, EDGES, axis=0) * 1e6)
        return torch.from_numpy(bands.astype(np.float32)), int(self.kind[i])


def main():
    args = options()
    torch.set_num_threads(1)
    loader = DataLoader(Calls(), batch_size=16, shuffle=True, drop_last=True, persistent_workers=True,
                        num_workers=2 if args.fix else 1)
    net = nn.Sequential(nn.AdaptiveAvgPool1d(16), nn.Flatten(), nn.LazyLinear(64), nn.ReLU(), nn.Linear(64, KINDS))
    net(torch.zeros(1, len(EDGES), 200))
    adam = torch.optim.Adam(net.parameters(), 1e-3)
    pace, over = Pace(args.seconds), False
    while not over:
        for bands, kind in loader:
            loss = nn.functional.cross_entropy(net(bands), kind)
            adam.zero_grad()
            loss.backward()
            adam.step()
            if over := pace.done():
                break
    pace.show()


if __name__ == "__main__":
    main()
