"""Heart beats cut from a long recording: multiprocessing's Pool.imap gives the features of one beat at a time, the main process gathers 256.
--fix: chunksize 1 -> 64."""
import itertools
import multiprocessing
import random

import numpy as np
import torch

from pace import Pace, options

BATCH, WIDTH = 256, 180
recording = None


def load_recording():
    global recording
    at = np.arange(360 * 600) / 360
    recording = (np.sin(2 * np.pi * 1.2 * at) ** 9 + 0.1 * np.random.default_rng(0).normal(size=len(at))).astype(np.float32)


def beat(start):
    piece = recording[start:start + WIDTH]
    return piece.reshape(-1, 6).sum(1), float(piece.max() > 1.05)


def starts():
    chance = random.Random(0)
    while True:
        yield chance.randrange(360 * 600 - WIDTH)


def main():
    args = options()
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(WIDTH // 6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    pace = Pace(args.seconds)
    with multiprocessing.Pool(2, initializer=load_recording) as pool:
        beats = pool.imap(beat, starts(), chunksize=64 if args.fix else 1)
        while True:
            features, labels = zip(*itertools.islice(beats, BATCH))
            features, labels = torch.from_numpy(np.stack(features)), torch.tensor(labels)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(model(features).squeeze(1), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        pace.show()


if __name__ == "__main__":
    main()
