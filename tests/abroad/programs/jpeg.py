"""JPEGs of 256 x 256 that two workers decode, for what watching costs."""
import io

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

import harness


class Photos(Dataset):
    def __init__(self, count=64):
        noise = np.random.default_rng(0)
        self.files = []
        for _ in range(count):
            coarse = noise.integers(0, 255, (32, 32, 3), dtype=np.uint8)
            file = io.BytesIO()
            Image.fromarray(coarse).resize((256, 256), Image.BICUBIC).save(file, "JPEG", quality=90)
            self.files.append(file.getvalue())

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        image = Image.open(io.BytesIO(self.files[index % len(self.files)])).convert("RGB")
        return torch.from_numpy(np.asarray(image).transpose(2, 0, 1).copy())


if __name__ == "__main__":
    args = harness.options()
    torch.set_num_threads(1)
    loader = DataLoader(Photos(), batch_size=32, num_workers=2)
    harness.loop(harness.forever(lambda: loader), lambda batch: None, args.seconds)
