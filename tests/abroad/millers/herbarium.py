"""timm: genus of a pressed plant from its scanned sheet, with a small residual network from timm."""
import os
import shutil
import tempfile

import numpy as np
import timm
import torch
from PIL import Image
from timm.data import create_transform
from timm.loss import LabelSmoothingCrossEntropy
from timm.optim import create_optimizer_v2
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder

from pace import Pace, options

GENERA = ("Acer", "Betula", "Carex", "Salix")
SIDE = 80


def scan_sheets(folder, sheets=40):
    rng = np.random.default_rng(33)
    for g, genus in enumerate(GENERA):
        os.makedirs(os.path.join(folder, genus))
        for i in range(sheets):
            coarse = rng.integers(0, 150, size=(8, 8, 3)) + [g * 20, 80, 60 - g * 15]
            sheet = Image.fromarray(coarse.clip(0, 255).astype(np.uint8)).resize((128, 128), Image.BILINEAR)
            sheet.save(os.path.join(folder, genus, f"sheet{i:04d}.jpg"), quality=90)


def train_one_epoch(model, loader, optimizer, loss_fn, pace):
    model.train()
    for images, genus in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(images), genus)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        if pace.done():
            return False
    return True


def main():
    args = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="herbarium-")
    try:
        scan_sheets(folder)
        transform = create_transform(SIDE, is_training=True, color_jitter=None, interpolation="bilinear")
        sheets = ImageFolder(folder, transform)
        workers = 2 if args.fix else 0
        loader = DataLoader(sheets, batch_size=8, shuffle=True, drop_last=True, num_workers=workers,
                            persistent_workers=workers > 0)
        model = timm.create_model("resnet10t", pretrained=False, num_classes=len(GENERA))
        optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
        pace = Pace(args.seconds)
        while train_one_epoch(model, loader, optimizer, LabelSmoothingCrossEntropy(0.1), pace):
            pass
        pace.show()
        del loader
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
