"""Recordings of many sample rates, resampled to 16 kHz by scipy in one worker. --fix: two."""
import numpy as np
import torch
from scipy import signal
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options


class Resample:
    def __init__(self, target=16_000):
        self.target = target

    def __call__(self, wave, rate):
        g = np.gcd(rate, self.target)
        return signal.resample_poly(wave, self.target // g, rate // g)


class Speech(Dataset):
    rates = [44_100, 48_000, 22_050, 32_000]

    def __init__(self, transform):
        rng = np.random.default_rng(0)
        self.waves = [rng.standard_normal(rate).astype(np.float32) for rate in self.rates]
        self.transform = transform

    def __len__(self):
        return 2_000_000

    def __getitem__(self, index):
        k = index % 4
        wave = self.transform(self.waves[k], self.rates[k])[:15_000]
        _, _, spectrum = signal.stft(wave, nperseg=400, noverlap=240)
        return {"spectrum": torch.from_numpy(np.log1p(np.abs(spectrum)).astype(np.float32)), "speaker": index % 12}


def main():
    args = options()
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Conv1d(201, 24, 5, stride=3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool1d(1), torch.nn.Flatten(), torch.nn.Linear(24, 12))
    opt = torch.optim.Adam(model.parameters())
    loader = DataLoader(Speech(Resample()), batch_size=8, num_workers=1 + args.fix)
    pace = Pace(args.seconds)
    for batch in loader:
        opt.zero_grad()
        torch.nn.functional.cross_entropy(model(batch["spectrum"]), batch["speaker"]).backward()
        opt.step()
        if pace.over():
            break
    pace.report()


if __name__ == "__main__":
    main()
