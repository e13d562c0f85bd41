"""Genus classifier for scanned herbarium sheets (the digitisation project's baseline)."""
import pathlib
import shutil
import tempfile

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

GENERA = 12
SIDE = 96


def scan_sheets(folder, count=48):
    """Stands for the scanner's output: one large JPEG per sheet and a list of labels."""
    rng = np.random.default_rng(7)
    rows = []
    for n in range(count):
        small = rng.integers(60, 255, (128, 160, 3), dtype=np.uint8)
        sheet = Image.fromarray(small).resize((1024, 820), Image.BILINEAR)
        path = folder / f"sheet_{n:04d}.jpg"
        sheet.save(path, quality=90)
        rows.append((path, int(rng.integers(GENERA))))
    return rows


class SheetDataset(Dataset):
    def __init__(self, rows, repeat=400):
        self.rows = rows
        self.repeat = repeat

    def __len__(self):
        return len(self.rows) * self.repeat

    def __getitem__(self, index):
        path, genus = self.rows[index % len(self.rows)]
        image = Image.open(path).convert("RGB").resize((SIDE, SIDE), Image.BILINEAR)
        array = np.asarray(image, dtype=np.float32) / 255.0
        return torch.from_numpy(array).permute(2, 0, 1), genus


def build_model():
    return nn.Sequential(
        nn.Conv2d(3, 8, 5, stride=4), nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, GENERA))


def train(rows, args):
    loader = DataLoader(SheetDataset(rows), batch_size=8, shuffle=True, drop_last=True,
                        num_workers=2 if args.fix else 0)
    torch.set_num_threads(1)   # the model is tiny
    model = build_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    pace = Pace(args.seconds)
    running = 0.0
    for images, genera in loader:
        optimizer.zero_grad()
        loss = criterion(model(images), genera)
        loss.backward()
        optimizer.step()
        running = 0.95 * running + 0.05 * loss.item()
        if pace.done():
            break
    print(f"loss {running:.3f}")
    pace.show()


def main():
    args = options()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="herbarium_"))
    try:
        train(scan_sheets(folder), args)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
