"""Names birds by their songs: spectrograms in HDF5, read ahead by an executor's threads, a GRU on top."""
import os
import shutil
import tempfile
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import h5py
import numpy as np
import torch
from torch import nn

from pace import Pace, options

SONGS, FRAMES, BANDS, SPECIES, BATCH = 512, 120, 64, 20, 32


def record(path):
    rng = np.random.default_rng(2)
    with h5py.File(path, "w") as store:
        store["songs"] = rng.standard_normal((SONGS, FRAMES, BANDS)).astype(np.float32)
        store["species"] = rng.integers(0, SPECIES, SONGS)


class SongBook:
    def __init__(self, path, workers, ahead=8):
        self.store = h5py.File(path, "r")
        self.pool = ThreadPoolExecutor(workers, thread_name_prefix="song-reader")
        self.ahead, self.rng = ahead, np.random.default_rng()

    def read(self, start):
        songs = self.store["songs"][start:start + BATCH]
        songs = (songs - songs.mean((1, 2), keepdims=True)) / songs.std((1, 2), keepdims=True)
        return torch.from_numpy(songs), torch.from_numpy(self.store["species"][start:start + BATCH])

    def __iter__(self):
        waiting = deque()
        while True:
            while len(waiting) < self.ahead:
                waiting.append(self.pool.submit(self.read, int(self.rng.integers(0, SONGS - BATCH))))
            yield waiting.popleft().result()

    def close(self):
        self.pool.shutdown(cancel_futures=True)
        self.store.close()


class SongNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(BANDS, 96, batch_first=True)
        self.head = nn.Linear(96, SPECIES)

    def forward(self, songs):
        states, _ = self.gru(songs)
        return self.head(states.mean(1))


def main():
    args = options()
    folder = Path(tempfile.mkdtemp(prefix="birds"))
    try:
        record(folder / "songs.h5")
        book = SongBook(folder / "songs.h5", workers=4 if args.fix else 1)
        net = SongNet()
        rule = torch.optim.AdamW(net.parameters(), 1e-3)
        pace = Pace(args.seconds)
        for songs, species in book:
            loss = nn.functional.cross_entropy(net(songs), species)
            rule.zero_grad()
            loss.backward()
            rule.step()
            if pace.done():
                break
        book.close()
        print(f"loss {loss.item():.3f}, on {os.cpu_count()} cores")
        pace.show()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
