"""Frost damage in orchards: a head is trained with Lightning over frozen vectors of the weather stations."""
import logging
import shutil
import tempfile
import warnings

import lightning as L
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from pace import Pace, options

DAYS, STATIONS, WIDTH = 30, 220_000, 128


class FrostModel(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.stations = nn.Embedding(STATIONS, WIDTH).requires_grad_(False)  # from the earlier pretraining
        self.head = nn.Sequential(nn.Linear(WIDTH + DAYS * 4, 64), nn.ReLU(), nn.Linear(64, 1))

    def training_step(self, batch, _):
        station, weather, damage = batch
        score = self.head(torch.cat([self.stations(station), weather], 1)).squeeze(1)
        loss = nn.functional.binary_cross_entropy_with_logits(score, damage)
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.head.parameters(), 1e-3)


class Timekeeper(Callback):
    def __init__(self, pace):
        self.pace = pace

    def on_train_batch_end(self, trainer, *_):
        if self.pace.done():
            trainer.should_stop = True


def orchards(count=4096):
    generator = torch.Generator().manual_seed(8)
    weather = torch.randn(count, DAYS * 4, generator=generator)
    station = torch.randint(0, STATIONS, (count,), generator=generator)
    return TensorDataset(station, weather, (weather[:, :8].mean(1) < -0.2).float())


def main():
    args = options()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    folder = tempfile.mkdtemp(prefix="frost")
    try:
        loader = DataLoader(orchards(), batch_size=16, shuffle=True, drop_last=True)
        keep = ModelCheckpoint(dirpath=folder, filename="frost-{step}", monitor="train_loss", save_last=True,
                               every_n_train_steps=500 if args.fix else 10)
        pace = Pace(args.seconds)
        trainer = L.Trainer(accelerator="cpu", max_epochs=-1, logger=False, enable_progress_bar=False,
                            enable_model_summary=False, callbacks=[Timekeeper(pace), keep])
        trainer.fit(FrostModel(), loader)
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
