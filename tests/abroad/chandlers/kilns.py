"""Predicts cracks in fired tiles: a small head on frozen glaze embeddings, with Lightning."""
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

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
RECIPES, WIDTH = 160_000, 128


class CrackModel(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.recipes = nn.Embedding(RECIPES, WIDTH)
        self.recipes.weight.requires_grad_(False)
        self.head = nn.Sequential(nn.Linear(WIDTH + 4, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, recipe, firing):
        return self.head(torch.cat([self.recipes(recipe), firing], 1)).squeeze(1)

    def training_step(self, batch, _):
        recipe, firing, cracked = batch
        return nn.functional.binary_cross_entropy_with_logits(self(recipe, firing), cracked)

    def configure_optimizers(self):
        return torch.optim.Adam([p for p in self.parameters() if p.requires_grad], 1e-3)


class Rate(Callback):
    def __init__(self, seconds):
        self.pace = Pace(seconds)

    def on_train_batch_end(self, trainer, *_):
        if self.pace.done():
            trainer.should_stop = True


def make_loader(count=40_000):
    torch.manual_seed(4)
    firing = torch.randn(count, 4)
    data = TensorDataset(torch.randint(RECIPES, (count,)), firing, (firing[:, 0] > 0.5).float())
    return DataLoader(data, batch_size=64, shuffle=True, num_workers=0)


def main():
    args = options()
    folder = tempfile.mkdtemp(prefix="kilns-")
    try:
        every = 500 if args.fix else 5
        rate = Rate(args.seconds)
        keep = ModelCheckpoint(folder, "crack-{step}", every_n_train_steps=every, save_top_k=1)
        trainer = L.Trainer(max_epochs=-1, accelerator="cpu", devices=1, logger=False, callbacks=[keep, rate],
                            enable_progress_bar=False, enable_model_summary=False, default_root_dir=folder)
        trainer.fit(CrackModel(), make_loader())
        rate.pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
