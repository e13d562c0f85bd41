"""Weld radiographs: webdataset shards of scanned films, classified as sound, porous or cracked."""
import io
import os
import random
import shutil
import tempfile

import numpy as np
import torch
import webdataset as wds
from PIL import Image
from torch import nn

from pace import Pace, options

SIDE = 96
SHARDS, FILMS = 4, 30


def scan_film(rng, kind):
    """A film as it comes from the scanner: 1800 x 1400, grainy, a bright bead across it."""
    grain = rng.normal(90, 12, (350, 450)).clip(0, 255).astype(np.uint8)
    film = np.array(Image.fromarray(grain).resize((1800, 1400)))
    film[640:760] = 180
    for _ in range(kind * 12):
        x, y = rng.integers(0, 1760), rng.integers(650, 740)
        film[y:y + 8, x:x + 8 + 20 * (kind - 1)] = 30
    out = io.BytesIO()
    Image.fromarray(film).convert("RGB").save(out, "JPEG", quality=88)
    return out.getvalue()


def write_shards(folder):
    rng = np.random.default_rng(3)
    films = [(kind, scan_film(rng, kind)) for kind in (0, 1, 2) for _ in range(3)]
    for shard in range(SHARDS):
        with wds.TarWriter(f"{folder}/films-{shard:03d}.tar") as sink:
            for n in range(FILMS):
                kind, jpeg = films[random.randrange(len(films))]
                sink.write({"__key__": f"{shard:03d}{n:05d}", "jpg": jpeg, "cls": str(kind)})
    return f"{folder}/films-{{000..{SHARDS - 1:03d}}}.tar"


def open_film(jpeg):
    return Image.open(io.BytesIO(jpeg)).convert("L")


def open_preview(jpeg):
    film = Image.open(io.BytesIO(jpeg))
    film.draft("L", (SIDE * 2, SIDE * 2))  # libjpeg scales while it decodes
    return film.convert("L")


def to_sample(opener):
    def film_sample(sample):
        film = opener(sample["jpg"]).resize((SIDE, SIDE), Image.BILINEAR)
        pixels = torch.from_numpy(np.asarray(film, dtype=np.float32) / 255.0)
        return pixels.unsqueeze(0), int(sample["cls"])
    return film_sample


def main():
    args = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="welds")
    try:
        urls = write_shards(folder)
        dataset = (wds.WebDataset(urls, resampled=True, shardshuffle=False, nodesplitter=wds.split_by_node)
                   .shuffle(20)
                   .map(to_sample(open_preview if args.fix else open_film))
                   .batched(16, partial=False))
        loader = wds.WebLoader(dataset, batch_size=None, num_workers=2, prefetch_factor=2)
        net = nn.Sequential(nn.Conv2d(1, 8, 5, stride=4), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(),
                            nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 3))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
        pace = Pace(args.seconds)
        for films, kinds in loader:
            loss = nn.functional.cross_entropy(net(films), torch.as_tensor(kinds))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
