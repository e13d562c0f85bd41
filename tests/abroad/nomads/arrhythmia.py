"""Arrhythmia detection: a reader thread cuts beats from ECG recordings, a 1-d convnet in torch learns them."""
import os
import queue
import shutil
import tempfile
import threading
import time

import numpy as np
import torch
from torch import nn

from pace import Pace, options

BEAT, BATCH, RHYTHMS = 256, 32, 4


def make_recordings(folder, patients=6, beats=400):
    rng = np.random.default_rng(13)
    ticks = np.linspace(0, 1, BEAT)
    for patient in range(patients):
        rhythm = rng.integers(0, RHYTHMS, beats)
        width = 0.02 + 0.02 * rhythm[:, None]
        ecg = np.exp(-((ticks - 0.5) / width) ** 2) + rng.normal(0, 0.1, (beats, BEAT))
        np.savez(os.path.join(folder, f"patient{patient}.npz"), ecg=(ecg * 1000).astype(np.int16), rhythm=rhythm)


class EcgReader(threading.Thread):
    """Reads recordings in turn and keeps a few batches ready for the trainer."""

    def __init__(self, folder, ready=2, blocking=False):
        super().__init__(name="ecg-reader", daemon=True)
        self.files = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
        self.batches = queue.Queue(maxsize=ready)
        self.blocking, self.finished = blocking, False

    def beats(self):
        rng = np.random.default_rng(1)
        while True:
            recording = np.load(self.files[rng.integers(len(self.files))])
            ecg, rhythm = recording["ecg"], recording["rhythm"]
            order = rng.permutation(len(ecg))
            for start in range(0, len(order) - BATCH, BATCH):
                chosen = order[start:start + BATCH]
                beat = ecg[chosen].astype(np.float32)
                beat -= beat.mean(axis=1, keepdims=True)
                yield beat / (beat.std(axis=1, keepdims=True) + 1e-6), rhythm[chosen]

    def run(self):
        for batch in self.beats():
            if not self.blocking:
                while self.batches.full() and not self.finished:
                    time.sleep(0.05)
            if self.finished:
                return
            self.batches.put(batch)

    def close(self):
        self.finished = True
        while self.is_alive():
            try:
                self.batches.get(timeout=0.02)
            except queue.Empty:
                pass
        self.join()


def build_model():
    return nn.Sequential(nn.Conv1d(1, 8, 9, stride=4), nn.ReLU(), nn.Conv1d(8, 16, 5, stride=2), nn.ReLU(),
                         nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(64, RHYTHMS))


def main():
    args = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="ecg_")
    make_recordings(folder)
    reader = EcgReader(folder, blocking=args.fix)
    reader.start()
    model = build_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    pace = Pace(args.seconds)
    try:
        while True:
            beats, rhythm = reader.batches.get()
            loss = nn.functional.cross_entropy(model(torch.from_numpy(beats)[:, None]), torch.from_numpy(rhythm))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        print(f"loss {loss.item():.3f}")
        pace.show()
    finally:
        reader.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
