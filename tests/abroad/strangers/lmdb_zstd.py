"""Compressed arrays in LMDB."""
import os
import tempfile

import lmdb
import numpy as np
import torch
import zstandard
from torch.utils.data import DataLoader, Dataset

import pace


def fill(path, count=100):
    rng = np.random.default_rng(0)
    packer = zstandard.ZstdCompressor(level=3)
    with lmdb.open(path, map_size=1 << 28) as env, env.begin(write=True) as txn:
        for k in range(count):
            field = np.cumsum(rng.integers(-2, 3, (4, 128, 128)), axis=2).astype(np.int32)
            txn.put(b"%06d" % k, packer.compress(field.tobytes()))


class Fields(Dataset):
    def __init__(self, path, count=100):
        self.path, self.count, self.env = path, count, None

    def __len__(self):
        return 500_000

    def _open(self):
        self.env = lmdb.open(self.path, readonly=True, lock=False, readahead=False)
        self.unpacker = zstandard.ZstdDecompressor()

    def __getitem__(self, k):
        if self.env is None:
            self._open()
        with self.env.begin(buffers=True) as txn:
            raw = self.unpacker.decompress(txn.get(b"%06d" % (k % self.count)))
        field = np.frombuffer(raw, np.int32).reshape(4, 128, 128).astype(np.float32)
        spectrum = np.fft.rfft2(field)
        spectrum[:, 16:-16] = 0
        spectrum[:, :, 16:] = 0
        return np.fft.irfft2(spectrum)[:, ::4, ::4].astype(np.float32)


def main():
    args = pace.options()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        fill(os.path.join(folder, "fields.lmdb"))
        loader = DataLoader(Fields(os.path.join(folder, "fields.lmdb")), batch_size=16, num_workers=2 if args.fix else 1, shuffle=True)
        net = torch.nn.Sequential(torch.nn.Conv2d(4, 8, 4, stride=4), torch.nn.ReLU(), torch.nn.Conv2d(8, 1, 1))
        optimiser = torch.optim.SGD(net.parameters(), 1e-4)
        for fields in pace.timed(loader, args.seconds):
            optimiser.zero_grad()
            net(fields).square().mean().backward()
            optimiser.step()


if __name__ == "__main__":
    main()
