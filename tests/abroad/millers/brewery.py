"""Lightning: final gravity of a brew from its first sensor curves. A small set, so the epochs are short."""
import logging
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


class Brews(Dataset):
    def __init__(self, count=128, hours=72, sensors=6):
        generator = torch.Generator().manual_seed(5)
        self.curves = torch.randn(count, hours, sensors, generator=generator).cumsum(1) * 0.1
        self.gravity = self.curves[:, -1].mean(1)

    def __len__(self):
        return len(self.curves)

    def __getitem__(self, i):
        return self.curves[i] + 0.01 * torch.randn_like(self.curves[i]), self.gravity[i]


class GravityModel(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(6, 24, batch_first=True)
        self.head = nn.Linear(24, 1)

    def training_step(self, batch, index):
        curves, gravity = batch
        _, hidden = self.rnn(curves)
        return nn.functional.mse_loss(self.head(hidden[-1]).squeeze(1), gravity)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=3e-3)


class PaceCallback(L.Callback):
    def __init__(self, pace):
        self.pace = pace

    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        if self.pace.done():
            trainer.should_stop = True


class BrewData(L.LightningDataModule):
    def __init__(self, keep):
        super().__init__()
        self.keep = keep
        self.brews = Brews()

    def train_dataloader(self):
        return DataLoader(self.brews, batch_size=16, shuffle=True, num_workers=2, persistent_workers=self.keep)


def main():
    args = options()
    torch.set_num_threads(1)
    L.seed_everything(1, verbose=False)
    pace = Pace(args.seconds)
    trainer = L.Trainer(max_epochs=-1, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False,
                        callbacks=[PaceCallback(pace)])
    trainer.fit(GravityModel(), datamodule=BrewData(keep=args.fix))
    print(f"epochs {trainer.current_epoch}")
    pace.show()


if __name__ == "__main__":
    main()
