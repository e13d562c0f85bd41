"""Search in a shop's catalogue: learns to bring queries and the items that were clicked together."""
import pathlib
import tempfile

import numpy as np
import torch
import torch.nn.functional as F

from pace import Pace, options

WIDTH, ITEMS, BATCH = 64, 3000, 128


def export(folder):
    """As the shop's export leaves it: one small file for each item, in folders by department."""
    rng = np.random.default_rng(11)
    paths = []
    for number in range(ITEMS):
        department = folder / f"department{number % 20:02d}"
        department.mkdir(exist_ok=True)
        path = department / f"item{number:05d}.npy"
        np.save(path, rng.normal(size=WIDTH).astype(np.float32))
        paths.append(path)
    return paths


class Items:
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def rows(self, numbers):
        return np.stack([np.load(self.paths[number]) for number in numbers])


class PackedItems(Items):
    """The same in one file that is mapped into memory."""

    def __init__(self, paths, packed):
        super().__init__(paths)
        np.save(packed, super().rows(range(len(paths))))
        self.table = np.load(packed, mmap_mode="r")

    def rows(self, numbers):
        return self.table[numbers]


class Towers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.query = torch.nn.Sequential(torch.nn.Linear(WIDTH, 128), torch.nn.ReLU(), torch.nn.Linear(128, 32))
        self.item = torch.nn.Sequential(torch.nn.Linear(WIDTH, 128), torch.nn.ReLU(), torch.nn.Linear(128, 32))

    def forward(self, queries, items):
        return F.normalize(self.query(queries), dim=1) @ F.normalize(self.item(items), dim=1).T


def train(items, seconds):
    towers = Towers()
    optimizer = torch.optim.Adam(towers.parameters(), lr=1e-3)
    rng, pace = np.random.default_rng(2), Pace(seconds)
    while True:
        clicked = rng.integers(len(items), size=BATCH)
        other = rng.integers(len(items), size=BATCH)
        found = torch.from_numpy(items.rows(np.concatenate([clicked, other])))
        queries = found[:BATCH] + 0.3 * torch.randn(BATCH, WIDTH)
        scores = towers(queries, found) * 20
        loss = F.cross_entropy(scores, torch.arange(BATCH))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.done():
            return pace


def main():
    args = options()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="catalogue") as name:
        folder = pathlib.Path(name)
        paths = export(folder)
        items = PackedItems(paths, folder / "items.npy") if args.fix else Items(paths)
        pace = train(items, args.seconds)
    pace.show()


if __name__ == "__main__":
    main()
