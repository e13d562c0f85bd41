"""Windows of a memory-mapped text, tokenised on the fly by a regular expression and a dict, no workers. --fix: num_workers=2."""
import os
import re
import tempfile

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

PATTERN = re.compile(rb"[a-z]+|[0-9]|[^\sa-z0-9]")


def write_corpus(path):
    rng = np.random.default_rng(0)
    words = [bytes(rng.integers(97, 123, rng.integers(2, 9), dtype=np.uint8)) for _ in range(900)]
    with open(path, "wb") as file:
        for _ in range(3000):
            file.write(b" ".join(words[k] for k in rng.integers(0, 900, 60)) + b", 42.\n")
    return words


class Windows(Dataset):
    def __init__(self, path, words, length=128):
        self.text = np.memmap(path, np.uint8, "r")
        self.vocabulary = {w: k + 1 for k, w in enumerate(words)}
        self.length = length

    def __len__(self):
        return 1_000_000

    def tokenize(self, raw):
        ids = [self.vocabulary.get(m.group(), 0) for m in PATTERN.finditer(raw)]
        return ids[:self.length + 1]

    def __getitem__(self, i):
        at = (i * 104729) % (len(self.text) - 9000)
        ids = torch.tensor(self.tokenize(self.text[at:at + 9000].tobytes()))
        return ids[:-1], ids[1:]


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "corpus.txt")
        words = write_corpus(path)
        data = Windows(path, words)
        loader = DataLoader(data, batch_size=16, num_workers=2 if args.fix else 0)
        embed, out = torch.nn.Embedding(901, 12), torch.nn.Linear(12, 901)
        opt = torch.optim.SGD([*embed.parameters(), *out.parameters()], 0.1)
        pace = Pace(args.seconds)
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(out(embed(x[:, :10])).flatten(0, 1), y[:, :10].flatten())
            opt.zero_grad()
            loss.backward()
            opt.step()
            if pace.over():
                break
        pace.report()
