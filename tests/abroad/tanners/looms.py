"""Foresees thread breaks on looms from the tension curve; a pool cuts and scales the windows ahead of the training."""
import multiprocessing as mp
import shutil
import tempfile
from collections import deque
from pathlib import Path

import numpy as np
import torch
from torch import nn

from pace import Pace, options

WINDOW, CHANNELS, BATCH = 80, 4, 32
curves = None


def weave(folder, looms=8, length=20000):
    """A day's tension of every loom, and where its thread broke."""
    rng = np.random.default_rng(8)
    for loom in range(looms):
        tension = rng.normal(size=(length, CHANNELS)).astype(np.float32)
        breaks = np.convolve(tension[:, 0], np.ones(20) / 20, "same") > 0.25
        np.savez(folder / f"loom{loom}.npz", tension=tension, breaks=breaks)


def open_curves(folder):
    global curves
    torch.set_num_threads(1)
    curves = []
    for path in sorted(Path(folder).glob("*.npz")):
        with np.load(path) as day:
            curves.append((day["tension"], day["breaks"]))


def cut_windows(seed):
    rng = np.random.default_rng(seed)
    windows, labels = [], []
    for _ in range(BATCH):
        tension, breaks = curves[rng.integers(len(curves))]
        start = rng.integers(len(tension) - WINDOW)
        piece = tension[start:start + WINDOW]
        windows.append((piece - piece.mean(0)) / (piece.std(0) + 1e-6))
        labels.append(breaks[start + WINDOW - 1])
    return np.stack(windows), np.array(labels, dtype=np.float32)


class BreakNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(CHANNELS, 128, num_layers=2, batch_first=True)
        self.head = nn.Linear(128, 1)

    def forward(self, windows):
        states, _ = self.gru(windows)
        return self.head(states[:, -1])[:, 0]


def main():
    args = options()
    torch.set_num_threads(1)
    folder = Path(tempfile.mkdtemp(prefix="looms"))
    weave(folder)
    model = BreakNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    pace, seed = Pace(args.seconds), 0
    with mp.Pool(2 if args.fix else 1, initializer=open_curves, initargs=(folder,)) as pool:
        ahead = deque()
        while True:
            while len(ahead) < 6:
                ahead.append(pool.apply_async(cut_windows, (seed,)))
                seed += 1
            windows, labels = ahead.popleft().get()
            logits = model(torch.from_numpy(windows))
            loss = nn.functional.binary_cross_entropy_with_logits(logits, torch.from_numpy(labels))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
    pace.show()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
