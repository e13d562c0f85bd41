"""Which depot for a parcel: hand-written addresses are matched against a gazetteer in the workers."""
import gzip
import json
import os
import random
import shutil
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info

from pace import Pace, options

DEPOTS, BATCH = 12, 32


def write_gazetteer(folder, places=220_000):
    rng = random.Random(1)
    path = os.path.join(folder, "gazetteer.json.gz")
    with gzip.open(path, "wt", compresslevel=1) as out:
        out.write(json.dumps({f"street {n}": [n % DEPOTS, round(rng.random(), 4), round(rng.random(), 4)]
                              for n in range(places)}))
    return path


class Addresses(Dataset):
    def __init__(self, path, count=BATCH * 24):
        rng = random.Random(4)
        self.path, self.gazetteer = path, None
        self.lines = [f"street {rng.randrange(220_000)}" for _ in range(count)]

    def load(self):
        with gzip.open(self.path, "rt") as source:
            self.gazetteer = json.load(source)

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        line = self.lines[index]
        depot, east, north = self.gazetteer[line]
        letters = torch.zeros(24, dtype=torch.long)
        letters[:len(line)] = torch.tensor([ord(c) % 64 for c in line])
        return letters, torch.tensor([east, north]), depot


def init_worker(_):
    torch.set_num_threads(1)
    get_worker_info().dataset.load()


class DepotNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(64, 16)
        self.body = nn.Sequential(nn.Linear(24 * 16 + 2, 64), nn.ReLU(), nn.Linear(64, DEPOTS))

    def forward(self, letters, place):
        return self.body(torch.cat([self.letters(letters).flatten(1), place], 1))


def main():
    args = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="parcels")
    try:
        loader = DataLoader(Addresses(write_gazetteer(folder)), batch_size=BATCH, shuffle=True, num_workers=2,
                            worker_init_fn=init_worker, persistent_workers=args.fix)
        net = DepotNet()
        optimizer = torch.optim.Adam(net.parameters(), 1e-3)
        pace, over, epoch = Pace(args.seconds), False, 0
        while not over:
            correct = 0
            for letters, place, depot in loader:
                scores = net(letters, place)
                loss = nn.functional.cross_entropy(scores, depot)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                correct += int((scores.argmax(1) == depot).sum())
                over = pace.done()
                if over:
                    break
            epoch += 1
        print(f"{epoch} epochs, {correct} right in the last")
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
