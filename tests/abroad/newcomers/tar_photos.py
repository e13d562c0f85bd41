"""WebDataset shards of PNG photos, decoded and enlarged; one worker. --fix: two."""
import io
import os
import tarfile
import tempfile

import numpy as np
import torch
import webdataset as wds
from PIL import Image

from pace import Pace, options


def write_shards(folder, shards=4, each=60):
    rng = np.random.default_rng(0)
    for s in range(shards):
        with tarfile.open(os.path.join(folder, f"photos-{s:03d}.tar"), "w") as tar:
            for n in range(each):
                small = rng.integers(0, 255, (24, 24, 3), dtype=np.uint8)
                buffer = io.BytesIO()
                Image.fromarray(small).resize((192, 192), Image.BICUBIC).save(buffer, "PNG", compress_level=1)
                for name, data in ((f"{s}_{n}.png", buffer.getvalue()), (f"{s}_{n}.cls", str(n % 7).encode())):
                    info = tarfile.TarInfo(name)
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
    return os.path.join(folder, "photos-{000..%03d}.tar" % (shards - 1))


def to_tensor(image):
    image = image.resize((72, 72), Image.LANCZOS)
    return torch.from_numpy(np.asarray(image, np.float32).transpose(2, 0, 1) / 255)


def main():
    args = options()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        urls = write_shards(folder)
        data = (wds.WebDataset(urls, resampled=True, shardshuffle=False).shuffle(100).decode("pil").to_tuple("png", "cls")
                .map_tuple(to_tensor, int).batched(8))
        loader = wds.WebLoader(data, batch_size=None, num_workers=2 if args.fix else 1)
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 12, 7, stride=4), torch.nn.ReLU(), torch.nn.AdaptiveMaxPool2d(1), torch.nn.Flatten(), torch.nn.Linear(12, 7))
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        pace = Pace(args.seconds)
        for images, classes in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(images), classes).backward()
            optimizer.step()
            if pace.over():
                break
        pace.report()


if __name__ == "__main__":
    main()
