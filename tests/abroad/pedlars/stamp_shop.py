"""Few-shot classifier for postage stamps: a handful of scans in LMDB, many short epochs."""
import io
import shutil
import tempfile

import lmdb
import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

COUNTRIES = 6


def scan_album(folder, scans=96):
    rng = np.random.default_rng(3)
    env = lmdb.open(folder, map_size=64 << 20)
    with env.begin(write=True) as txn:
        for i in range(scans):
            base = rng.integers(0, 255, (3,)) * 0.4 + (i % COUNTRIES) * 20
            pixels = np.clip(base + rng.normal(0, 25, (40, 32, 3)), 0, 255).astype("uint8")
            out = io.BytesIO()
            Image.fromarray(pixels).save(out, "PNG")
            txn.put(b"%05d" % i, out.getvalue())
    env.close()
    return scans


class Stamps(Dataset):
    def __init__(self, folder, scans):
        self.folder, self.scans, self.env = folder, scans, None

    def __len__(self):
        return self.scans

    def __getitem__(self, i):
        if self.env is None:
            self.env = lmdb.open(self.folder, readonly=True, lock=False)
        with self.env.begin() as txn:
            image = Image.open(io.BytesIO(txn.get(b"%05d" % i)))
        x = torch.from_numpy(np.asarray(image).copy()).permute(2, 0, 1).float() / 255
        return (x.flip(2) if torch.rand(()) < 0.5 else x), i % COUNTRIES


def build_net():
    return nn.Sequential(nn.Conv2d(3, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(4),
                         nn.Conv2d(12, 24, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(24, COUNTRIES))


def main():
    opts = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="stamps")
    try:
        scans = scan_album(folder)
        loader = DataLoader(Stamps(folder, scans), batch_size=16, shuffle=True, num_workers=2,
                            persistent_workers=opts.fix)
        net = build_net()
        opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
        pace, over = Pace(opts.seconds), False
        while not over:
            for images, labels in loader:
                loss = nn.functional.cross_entropy(net(images), labels)
                opt.zero_grad()
                loss.backward()
                opt.step()
                over = pace.done() or over
                if over:
                    break
        pace.show()
        del loader
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
