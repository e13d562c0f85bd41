"""Loader workers share a cache of spectrograms, so that each is computed only once: a dict of multiprocessing's Manager.
--fix: a tensor in shared memory."""
import multiprocessing

import numpy as np
import torch

from pace import Pace, options

CLIPS, BANDS, FRAMES = 256, 64, 48


def spectrogram(clip):
    wave = np.random.default_rng(clip).normal(size=(FRAMES, 2 * BANDS))
    return np.log1p(np.abs(np.fft.rfft(wave * np.hanning(2 * BANDS))[:, :BANDS])).T.astype(np.float32)


class DictCache:
    def __init__(self, manager):
        self.known = manager.dict()

    def get(self, clip):
        if clip not in self.known:
            self.known[clip] = spectrogram(clip)
        return torch.from_numpy(self.known[clip])


class TensorCache:
    def __init__(self):
        self.values = torch.zeros(CLIPS, BANDS, FRAMES).share_memory_()
        self.there = torch.zeros(CLIPS, dtype=torch.bool).share_memory_()

    def get(self, clip):
        if not self.there[clip]:
            self.values[clip] = torch.from_numpy(spectrogram(clip))
            self.there[clip] = True
        return self.values[clip]


class Clips(torch.utils.data.Dataset):
    def __init__(self, cache):
        self.cache = cache

    def __len__(self):
        return 1 << 24

    def __getitem__(self, index):
        return self.cache.get(index * 7919 % CLIPS), index % 2


def main():
    args = options()
    torch.set_num_threads(1)
    with multiprocessing.Manager() as manager:
        cache = TensorCache() if args.fix else DictCache(manager)
        loader = torch.utils.data.DataLoader(Clips(cache), batch_size=128, num_workers=2)
        model = torch.nn.Sequential(torch.nn.AvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(BANDS * FRAMES // 16, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        pace = Pace(args.seconds)
        for clips, labels in loader:
            loss = torch.nn.functional.cross_entropy(model(clips), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        pace.show()
        del loader


if __name__ == "__main__":
    main()
