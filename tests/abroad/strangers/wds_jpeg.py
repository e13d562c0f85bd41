"""JPEG pictures in tar shards, by webdataset."""
import io
import os
import tarfile
import tempfile

import numpy as np
import torch
import webdataset as wds
from PIL import Image

from pace import Pace, options


def write_shards(folder, shards=4, each=40):
    rng = np.random.default_rng(0)
    for s in range(shards):
        with tarfile.open(os.path.join(folder, f"train-{s:03d}.tar"), "w") as tar:
            for k in range(each):
                small = Image.fromarray(rng.integers(0, 255, (30, 40, 3), dtype=np.uint8))
                data = io.BytesIO()
                small.resize((400, 300)).save(data, "JPEG", quality=85)
                for ext, raw in (("jpg", data.getvalue()), ("cls", b"%d" % (k % 10))):
                    info = tarfile.TarInfo(f"{s:03d}{k:05d}.{ext}")
                    info.size = len(raw)
                    tar.addfile(info, io.BytesIO(raw))
    return os.path.join(folder, "train-{000..%03d}.tar" % (shards - 1))


def transform(image):
    image = image.resize((128, 128), Image.BICUBIC)
    return torch.from_numpy(np.asarray(image, np.float32).transpose(2, 0, 1) / 255)


def main():
    args = options()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        urls = write_shards(folder)
        data = (wds.WebDataset(urls, resampled=True, nodesplitter=wds.split_by_node, shardshuffle=False)
                .decode("pil").to_tuple("jpg", "cls").map_tuple(transform, int).batched(8))
        loader = wds.WebLoader(data, batch_size=None, num_workers=2 if args.fix else 1)
        net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 7, stride=7), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),
                                  torch.nn.Flatten(), torch.nn.Linear(8, 10))
        pace = Pace(args.seconds)
        for images, labels in loader:
            torch.nn.functional.cross_entropy(net(images), torch.as_tensor(labels)).backward()
            net.zero_grad()
            if pace.tick():
                break
        pace.show()


if __name__ == "__main__":
    main()
