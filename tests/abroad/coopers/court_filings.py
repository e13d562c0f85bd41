"""Sorts court filings by kind. Most are a page or two of text; now and then one is a bundle with all its exhibits.

--fix: a filing's kind shows on its first pages, so only the first 20 kB are read.
"""
import os
import random
import re
import shutil
import tempfile
import zlib

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

FILINGS, BUCKETS, KINDS = 2560, 1024, 6
WORD = re.compile(r"[a-z]+|\d+")
TERMS = ("motion plaintiff defendant exhibit order court hereby judgment relief counsel affidavit appeal brief "
         "witness hearing dismiss party claim damages statute section pursuant filed clerk").split()


def write_filings(folder):
    rng = random.Random(5)
    for i in range(FILINGS):
        words = [f"{rng.choice(TERMS)}{rng.randrange(40)}" for _ in range(100)]
        exhibits = 1600 if i % 128 == 7 else 1
        with open(os.path.join(folder, f"{i:04d}.txt"), "w") as out:
            out.write(" ".join(words * exhibits))


class Filings(Dataset):
    def __init__(self, folder, limit):
        self.limit = limit
        self.paths = sorted(os.path.join(folder, name) for name in os.listdir(folder))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        with open(self.paths[i]) as filing:
            text = filing.read(self.limit).lower()
        counts, before = torch.zeros(BUCKETS), ""
        numbers = []
        for match in WORD.finditer(text):
            word = match.group()
            numbers.append(zlib.crc32(f"{before} {word}".encode()) % BUCKETS)
            before = word
        counts.index_add_(0, torch.tensor(numbers), torch.ones(len(numbers)))
        return torch.log1p(counts), i % KINDS


def main():
    args = options()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="filings_")
    write_filings(folder)
    loader = DataLoader(Filings(folder, 20_000 if args.fix else -1), batch_size=4, shuffle=True, num_workers=2,
                        persistent_workers=True)
    model = nn.Linear(BUCKETS, KINDS)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    pace, over = Pace(args.seconds), False
    try:
        while not over:
            for counts, kinds in loader:
                loss = nn.functional.cross_entropy(model(counts), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                over = pace.done()
                if over:
                    break
        pace.show()
    finally:
        del loader
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
