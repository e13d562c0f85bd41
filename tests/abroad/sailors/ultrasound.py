"""Speckle removal for ultrasound frames, Lightning module with a small U-Net."""
import logging
import shutil
import tempfile
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Frames(Dataset):
    def __init__(self, count=512, side=64):
        torch.manual_seed(0)
        self.clean = F.interpolate(torch.rand(count, 1, 8, 8), size=side, mode="bilinear")

    def __len__(self):
        return len(self.clean) * 40

    def __getitem__(self, index):
        clean = self.clean[index % len(self.clean)]
        return clean * (1 + 0.3 * torch.randn_like(clean)), clean


def block(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(),
                         nn.Conv2d(outputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU())


class SpeckleNet(L.LightningModule):
    def __init__(self, width=24):
        super().__init__()
        self.down = block(1, width)
        self.middle = block(width, 2 * width)
        self.up = block(3 * width, width)
        self.last = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        top = self.down(x)
        low = F.interpolate(self.middle(F.max_pool2d(top, 2)), scale_factor=2.0)
        return self.last(self.up(torch.cat([top, low], 1)))

    def training_step(self, batch, batch_idx):
        noisy, clean = batch
        return F.l1_loss(self(noisy), clean)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


class TimeLimit(L.Callback):
    def __init__(self, pace):
        self.pace = pace

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if self.pace.done():
            trainer.should_stop = True


def main():
    args = options()
    root = tempfile.mkdtemp(prefix="ultrasound_")
    # What Lightning's warning asks for: more workers, kept between epochs.
    loading = dict(num_workers=2, persistent_workers=True, prefetch_factor=4) if args.fix else {}
    try:
        loader = DataLoader(Frames(), batch_size=16, shuffle=True, **loading)
        pace = Pace(args.seconds)
        trainer = L.Trainer(accelerator="cpu", max_epochs=100, logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False,
                            default_root_dir=root, callbacks=[TimeLimit(pace)])
        trainer.fit(SpeckleNet(), loader)
        pace.show()
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
