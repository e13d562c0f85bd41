"""Postage stamps by country, from webdataset shards of JPEGs."""
import io
import tempfile

import numpy as np
import torch
import webdataset as wds
from PIL import Image, ImageFilter, ImageOps
from torch import nn

from pace import Pace, options


def album(folder, shards=4, stamps=80):
    rng = np.random.default_rng(2)
    prints = []
    for _ in range(24):
        art = Image.fromarray(rng.integers(0, 256, (24, 18, 3), dtype=np.uint8)).resize((216, 288), Image.BICUBIC)
        page = io.BytesIO()
        art.save(page, "JPEG", quality=88)
        prints.append(page.getvalue())
    for s in range(shards):
        with wds.TarWriter(f"{folder}/album-{s:03d}.tar") as sink:
            for k in range(stamps):
                sink.write({"__key__": f"{s:03d}{k:05d}", "jpg": prints[(s * 7 + k) % 24], "cls": (s * 7 + k) % 24})
    return f"{folder}/album-{{000..{shards - 1:03d}}}.tar"


def flatten(raw):
    art = Image.open(io.BytesIO(raw)).convert("RGB")
    art = art.rotate(np.random.uniform(-8, 8), Image.BICUBIC).filter(ImageFilter.GaussianBlur(1))
    art = ImageOps.autocontrast(art).resize((48, 64), Image.LANCZOS)
    return torch.from_numpy(np.asarray(art, dtype=np.float32).transpose(2, 0, 1) / 255)


def number(raw):
    return int(raw)


def main():
    o = options()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        urls = album(folder)
        data = (wds.WebDataset(urls, resampled=True, shardshuffle=False, handler=wds.warn_and_continue)
                .shuffle(100, initial=20).to_tuple("jpg", "cls").map_tuple(flatten, number).batched(8))
        loader = wds.WebLoader(data, batch_size=None, num_workers=2 if o.fix else 1)
        net = nn.Sequential(nn.Conv2d(3, 8, 5, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(128, 24))
        opt = torch.optim.SGD(net.parameters(), 0.05)
        pace = Pace(o.seconds)
        for x, y in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(net(x), torch.as_tensor(y)).backward()
            opt.step()
            if pace.done():
                break
        pace.show()
        del loader


if __name__ == "__main__":
    main()
