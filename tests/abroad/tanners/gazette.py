"""Sorts a newspaper's articles into sections; a process of our own keeps the next batches ready."""
import gc
import multiprocessing as mp
import pickle
import random
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from pace import Pace, options

WORDS, SECTIONS, BATCH, LENGTH = 4000, 8, 64, 100


@dataclass
class Token:
    word: np.int64
    weight: np.float32
    column: int


@dataclass
class Article:
    section: int
    tokens: list


def print_edition(folder, articles=512):
    """One edition of the paper: articles whose words lean towards their section."""
    rng = random.Random(4)
    edition = []
    for _ in range(articles):
        section = rng.randrange(SECTIONS)
        words = [(rng.randrange(WORDS // SECTIONS) * SECTIONS + section) if rng.random() < 0.3
                 else rng.randrange(WORDS) for _ in range(LENGTH)]
        tokens = [Token(np.int64(w), np.float32(rng.random()), i % 5) for i, w in enumerate(words)]
        edition.append(Article(section, tokens))
    with open(folder / "edition.pkl", "wb") as out:
        pickle.dump(edition, out)


class Newsdesk(mp.Process):
    """Shuffles the edition again and again and hands out batches."""

    def __init__(self, folder, tray, arrays):
        super().__init__(daemon=True)
        self.folder, self.tray, self.arrays = folder, tray, arrays

    def run(self):
        self.tray.cancel_join_thread()
        with open(self.folder / "edition.pkl", "rb") as source:
            edition = pickle.load(source)
        if self.arrays:
            words = np.array([[t.word for t in a.tokens] for a in edition], dtype=np.int64)
            weights = np.array([[t.weight for t in a.tokens] for a in edition], dtype=np.float32)
            sections = np.array([a.section for a in edition])
        rng = np.random.default_rng(1)
        while True:
            order = rng.permutation(len(edition))
            for at in range(0, len(order), BATCH):
                chosen = order[at:at + BATCH]
                if self.arrays:
                    self.tray.put((words[chosen], weights[chosen], sections[chosen]), timeout=20)
                else:
                    self.tray.put([edition[i] for i in chosen], timeout=20)


def as_tensors(batch):
    if isinstance(batch, tuple):
        return [torch.from_numpy(a) for a in batch]
    words = np.fromiter((t.word for a in batch for t in a.tokens), np.int64).reshape(len(batch), -1)
    weights = np.fromiter((t.weight for a in batch for t in a.tokens), np.float32).reshape(len(batch), -1)
    return torch.from_numpy(words), torch.from_numpy(weights), torch.tensor([a.section for a in batch])


def main():
    args = options()
    torch.set_num_threads(1)
    folder = Path(tempfile.mkdtemp(prefix="gazette"))
    print_edition(folder)
    tray = mp.Queue(maxsize=8)
    desk = Newsdesk(folder, tray, arrays=args.fix)
    bag = nn.EmbeddingBag(WORDS, 32, mode="sum")
    head = nn.Linear(32, SECTIONS)
    optimizer = torch.optim.SGD([*bag.parameters(), *head.parameters()], lr=0.05)
    desk.start()
    gc.freeze()  # what lives by now stays: spares the collector the libraries
    pace = Pace(args.seconds)
    while True:
        words, weights, sections = as_tensors(tray.get())
        loss = nn.functional.cross_entropy(head(bag(words, per_sample_weights=weights)), sections)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.done():
            break
    desk.terminate()
    desk.join()
    pace.show()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
