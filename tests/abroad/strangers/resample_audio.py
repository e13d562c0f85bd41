"""Speech commands at another rate than the model's."""
import numpy as np
import scipy.signal
import torch
from torch.utils.data import DataLoader, Dataset

import pace


class Commands(Dataset):
    def __init__(self, source=44_100, target=16_000):
        rng = np.random.default_rng(4)
        self.recordings = [rng.normal(0, 0.1, source).astype(np.float32) for _ in range(16)]
        self.up, self.down = target // 100, source // 100
        self.target = target

    def __len__(self):
        return 85_000

    def __getitem__(self, index):
        audio = scipy.signal.resample_poly(self.recordings[index % 16], self.up, self.down)
        b, a = scipy.signal.butter(4, [100, 6000], "bandpass", fs=self.target)
        audio = scipy.signal.lfilter(b, a, audio)
        _, _, spectrum = scipy.signal.stft(audio, self.target, nperseg=400, noverlap=240)
        return torch.from_numpy(np.log1p(np.abs(spectrum)).astype(np.float32)), index % 12


args = pace.options(workers=1, batch=8)
if __name__ == "__main__":
    torch.set_num_threads(1)
    net = torch.nn.Sequential(torch.nn.Conv1d(201, 24, 5, stride=3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool1d(1),
                              torch.nn.Flatten(), torch.nn.Linear(24, 12))
    optimiser = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    loader = DataLoader(Commands(), args.batch, shuffle=True, num_workers=2 if args.fix else args.workers)
    for spectra, words in pace.timed(loader, args.seconds):
        loss = torch.nn.functional.cross_entropy(net(spectra), words)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
