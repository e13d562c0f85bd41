"""Bearing fault detection on vibration windows of wind turbines (developed on Windows laptops)."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

WINDOW = 512


def simulate_vibration(turbines=6, length=40_000, seed=11):
    rng = np.random.default_rng(seed)
    time_axis = np.arange(length) / 2000.0
    records = []
    for n in range(turbines):
        wave = np.sin(2 * np.pi * (18 + n) * time_axis) + 0.3 * rng.standard_normal(length)
        if n % 2:
            wave[::170] += 3.0
        records.append(wave.astype(np.float32))
    return np.stack(records)


class VibrationWindows(Dataset):
    def __init__(self, records, per_turbine=200):
        self.records = records
        self.per_turbine = per_turbine

    def __len__(self):
        return len(self.records) * self.per_turbine

    def __getitem__(self, index):
        turbine, part = divmod(index, self.per_turbine)
        start = part * 190
        window = self.records[turbine, start:start + WINDOW]
        spectrum = np.abs(np.fft.rfft(window * np.hanning(WINDOW)))
        return torch.from_numpy(np.log1p(spectrum).astype(np.float32)), turbine % 2


class FaultNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(WINDOW // 2 + 1, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 2))

    def forward(self, x):
        return self.layers(x)


def main():
    args = options()
    windows = VibrationWindows(simulate_vibration())
    loader = DataLoader(windows, batch_size=32, shuffle=True, num_workers=1,
                        multiprocessing_context="spawn", persistent_workers=args.fix)
    torch.set_num_threads(1)
    net = FaultNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-4)
    criterion = nn.CrossEntropyLoss()
    pace = Pace(args.seconds)
    over = False
    epoch = 0
    while not over:
        total, seen, hits = 0.0, 0, 0
        for spectra, faulty in loader:
            optimizer.zero_grad()
            scores = net(spectra)
            loss = criterion(scores, faulty)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(faulty)
            hits += (scores.argmax(1) == faulty).sum().item()
            seen += len(faulty)
            over = pace.done()
            if over:
                break
        epoch += 1
        if epoch < 4:
            print(f"epoch {epoch} loss {total / seen:.3f} accuracy {hits / seen:.3f}")
    pace.show()


if __name__ == "__main__":
    main()
