"""webdataset and torchvision: species of reef fish from divers' photos in tar shards."""
import glob
import io
import os
import tempfile

import numpy as np
import torch
import webdataset as wds
from PIL import Image
from torch import nn
from torchvision import transforms

from pace import Pace, options

SPECIES = 6


def write_shards(folder, shards=4, photos=24):
    rng = np.random.default_rng(21)
    for shard in range(shards):
        with wds.TarWriter(os.path.join(folder, f"reef-{shard:03d}.tar")) as sink:
            for i in range(photos):
                species = int(rng.integers(SPECIES))
                coarse = rng.integers(0, 160, size=(9, 12, 3)) + np.array([species * 15, 40, 90 - species * 15])
                photo = Image.fromarray(coarse.clip(0, 255).astype(np.uint8)).resize((640, 480), Image.BICUBIC)
                out = io.BytesIO()
                photo.save(out, "JPEG", quality=85)
                sink.write({"__key__": f"dive{shard:03d}_{i:04d}", "jpg": out.getvalue(), "cls": species})


def make_transform(crop_first):
    colour = transforms.ColorJitter(brightness=0.3, contrast=0.3, saturation=0.3, hue=0.1)
    crop = transforms.RandomResizedCrop(96, scale=(0.3, 1.0))
    steps = [crop, colour] if crop_first else [colour, crop]
    return transforms.Compose(steps + [transforms.RandomHorizontalFlip(), transforms.ToTensor()])


def make_loader(folder, transform):
    shards = sorted(glob.glob(os.path.join(folder, "*.tar")))
    photos = (wds.WebDataset(shards, shardshuffle=len(shards)).repeat().shuffle(50)
              .decode("pil").to_tuple("jpg", "cls").map_tuple(transform, int).batched(16))
    return wds.WebLoader(photos, batch_size=None, num_workers=2)


def main():
    args = options()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="reef-") as folder:
        write_shards(folder)
        loader = make_loader(folder, make_transform(crop_first=args.fix))
        model = nn.Sequential(nn.Conv2d(3, 12, 5, stride=4), nn.ReLU(), nn.Conv2d(12, 24, 3, stride=2), nn.ReLU(),
                              nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, SPECIES))
        optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
        pace = Pace(args.seconds)
        for images, species in loader:
            loss = nn.functional.cross_entropy(model(images), torch.as_tensor(species))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        print(f"loss {loss.item():.3f}")
        pace.show()


if __name__ == "__main__":
    main()
