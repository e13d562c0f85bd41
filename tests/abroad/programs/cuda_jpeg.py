"""Trains a ResNet on JPEG images that two workers decode; the fix is eight."""
import io

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

import cuda


class Photos(Dataset):
    def __init__(self):
        rng = np.random.default_rng(0)
        self.files = []
        for _ in range(64):
            coarse = Image.fromarray(rng.integers(0, 255, (24, 32, 3), dtype=np.uint8)).resize((640, 480), Image.BICUBIC)
            file = io.BytesIO()
            coarse.save(file, "JPEG", quality=90)
            self.files.append(file.getvalue())

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        image = Image.open(io.BytesIO(self.files[index % 64])).convert("RGB")
        left, top = rng.integers(0, 160), rng.integers(0, 100)
        image = image.resize((224, 224), Image.BILINEAR, box=(left, top, left + 480, top + 380))
        pixels = torch.from_numpy(np.asarray(image, dtype=np.float32) / 255)
        return pixels.permute(2, 0, 1).contiguous(), index % 1000


if __name__ == "__main__":
    args = cuda.arguments()
    import torchvision
    model = torchvision.models.resnet18().cuda().to(memory_format=torch.channels_last)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Photos(), batch_size=64, num_workers=8 if args.fix else 2, pin_memory=True)
    meter = cuda.Meter(args.seconds)
    for images, labels in loader:
        images = images.cuda(non_blocking=True).to(memory_format=torch.channels_last)
        labels = labels.cuda(non_blocking=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if meter.tick():
            break
    meter.show()
