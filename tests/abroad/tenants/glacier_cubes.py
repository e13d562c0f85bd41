"""Glacier thickness from radar cubes; each sample is a dict with the whole cube, the step takes a patch of it."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options


class Cubes(Dataset):
    def __init__(self, n=20000):
        rng = np.random.default_rng(11)
        self.ice = rng.random((12, 16, 256, 256), dtype=np.float32)
        self.bed = rng.random((12, 256, 256), dtype=np.float32)
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        k = i % len(self.ice)
        return {"ice": self.ice[k], "bed": self.bed[k], "corner": (i * 37 % 192, i * 53 % 192), "campaign": f"GL{k:02d}"}


def as_is(rows):
    return rows


def main():
    o = options()
    torch.set_num_threads(1)
    loader = DataLoader(Cubes(), batch_size=4, shuffle=True, collate_fn=as_is, num_workers=0 if o.fix else 2)
    net = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 1, 3, padding=1))
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    pace = Pace(o.seconds)
    for rows in loader:
        ice, bed = [], []
        for row in rows:
            r, c = row["corner"]
            ice.append(row["ice"][:, r:r + 48, c:c + 48])
            bed.append(row["bed"][r:r + 48, c:c + 48])
        x, y = torch.from_numpy(np.stack(ice)), torch.from_numpy(np.stack(bed))
        opt.zero_grad()
        ((net(x)[:, 0] - y) ** 2).mean().backward()
        opt.step()
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    main()
