"""Leaf diseases of soybeans: a new head on a timm trunk that stays as it is ("linear probing"), with Accelerate."""
import os
import shutil
import tempfile

import numpy as np
import timm
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

DISEASES = ["healthy", "rust", "frogeye", "blight", "mosaic"]


class LeafPhotos(Dataset):
    """Leaves as one uint8 array on disk, mapped."""

    def __init__(self, path):
        self.leaves = np.load(path, mmap_mode="r")
        self.mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
        self.std = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)

    def __len__(self):
        return 4000

    def __getitem__(self, number):
        row = number % len(self.leaves)
        leaf = torch.tensor(self.leaves[row]).float() / 255
        return (leaf - self.mean) / self.std, row % len(DISEASES)


class LeafClassifier(nn.Module):
    def __init__(self, frozen):
        super().__init__()
        self.trunk = timm.create_model("resnet18", pretrained=False, num_classes=0)
        self.head = nn.Linear(self.trunk.num_features, len(DISEASES))
        self.trunk.eval()
        if frozen:
            self.trunk.requires_grad_(False)

    def forward(self, leaves):
        return self.head(self.trunk(leaves))


def main():
    asked = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="soybeans")
    try:
        path = os.path.join(folder, "leaves.npy")
        np.save(path, np.random.default_rng(2).integers(0, 256, (64, 3, 64, 64), dtype=np.uint8))
        accelerator = Accelerator(cpu=True)
        model = LeafClassifier(frozen=asked.fix)
        optimizer = torch.optim.AdamW(model.head.parameters(), lr=1e-3)
        loader = DataLoader(LeafPhotos(path), batch_size=8, shuffle=True, num_workers=1)
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
        pace = Pace(asked.seconds)
        over = False
        while not over:
            for leaves, disease in loader:
                loss = nn.functional.cross_entropy(model(leaves), disease)
                accelerator.backward(loss)
                optimizer.step()
                model.zero_grad()
                over = pace.done()
                if over:
                    break
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
