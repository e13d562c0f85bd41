"""Sorts a museum's small collection of coins by mint, with Lightning: few coins, many epochs."""
import logging
import shutil
import tempfile
import warnings
from pathlib import Path

import lightning as L
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def photograph(folder, coins=128):
    rng = np.random.default_rng(3)
    for i in range(coins):
        np.save(folder / f"coin_{i:04}.npy", (rng.random((3, 40, 40)) * 200 + i % 6 * 9).astype(np.uint8))


class Coins(Dataset):
    def __init__(self, folder):
        self.paths = sorted(folder.glob("*.npy"))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        photo = torch.from_numpy(np.load(self.paths[i])).float() / 255
        if torch.rand(()) < 0.5:
            photo = photo.flip(2)
        return photo, i % 6


class MintClassifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 12, 5, stride=2), nn.ReLU(), nn.Conv2d(12, 24, 3, stride=2), nn.ReLU(),
                                 nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 6))

    def training_step(self, batch, batch_idx):
        photo, mint = batch
        return nn.functional.cross_entropy(self.net(photo), mint)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 2e-3)


class ClosingTime(L.Callback):
    def __init__(self, pace):
        self.pace = pace

    def on_train_batch_end(self, trainer, *args):
        if self.pace.done():
            trainer.should_stop = True


def main():
    opts = options()
    torch.set_num_threads(1)
    folder = Path(tempfile.mkdtemp(prefix="museum"))
    try:
        photograph(folder)
        loader = DataLoader(Coins(folder), batch_size=32, shuffle=True, num_workers=2,
                            persistent_workers=opts.fix)
        pace = Pace(opts.seconds)
        trainer = L.Trainer(max_epochs=100000, accelerator="cpu", logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False, callbacks=[ClosingTime(pace)])
        trainer.fit(MintClassifier(), loader)
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
