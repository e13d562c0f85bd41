"""Mass spectra along an ice core, as tar shards for webdataset, packed to save the institute's disks.

--fix: the shards lie there as plain tar."""
import bz2
import io
import os
import tarfile
import tempfile

import numpy as np
import torch
import webdataset as wds
from torch import nn

from pace import Pace, options

SHARDS, EACH, BINS, LINES = 4, 24, 1024, 48


def drill(folder, plain):
    rng = np.random.default_rng(3)
    urls = []
    for shard in range(SHARDS):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            for number in range(EACH):
                spectra = rng.poisson(20 + 15 * np.sin(np.linspace(0, 40, BINS)) ** 2, (LINES, BINS)).astype(np.uint16)
                sample = io.BytesIO()
                np.save(sample, spectra)
                for suffix, body in (("npy", sample.getvalue()), ("cls", str(number % 3).encode())):
                    entry = tarfile.TarInfo(f"core{shard}_{number:04d}.{suffix}")
                    entry.size = len(body)
                    tar.addfile(entry, io.BytesIO(body))
        path = os.path.join(folder, f"core-{shard}.tar" + ("" if plain else ".bz2"))
        with open(path, "wb") as file:
            file.write(buffer.getvalue() if plain else bz2.compress(buffer.getvalue(), 9))
        urls.append(path if plain else f"pipe:bzip2 -dc {path}")
    return urls


def prepare(spectra):
    return torch.from_numpy(np.sqrt(spectra[::4], dtype=np.float32))


def main():
    args = options()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        urls = drill(folder, args.fix)
        dataset = wds.WebDataset(urls, shardshuffle=False).decode().to_tuple("npy", "cls").map_tuple(prepare, int).batched(8).repeat()
        loader = wds.WebLoader(dataset, batch_size=None, num_workers=2)
        model = nn.Sequential(nn.Conv1d(LINES // 4, 16, 9, stride=8), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(16, 3))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        pace = Pace(args.seconds)
        for spectra, age in loader:
            loss = nn.functional.cross_entropy(model(spectra), torch.as_tensor(age))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        pace.show()


if __name__ == "__main__":
    main()
