"""Finds faults in woven cloth (16 kinds) from line-camera features, with Lightning. The curve of the AUROC
is wanted on the progress display, so it is logged while training."""
import logging
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import MulticlassAUROC

from pace import Pace, options

KINDS, FEATURES = 16, 96
warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class FaultFinder(L.LightningModule):
    def __init__(self, each_batch):
        super().__init__()
        self.each_batch = each_batch
        self.net = nn.Sequential(nn.Linear(FEATURES, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, KINDS))
        self.auroc = MulticlassAUROC(KINDS, thresholds=None, validate_args=False)

    def training_step(self, batch, index):
        features, kinds = batch
        scores = self.net(features)
        loss = nn.functional.cross_entropy(scores, kinds)
        self.auroc.update(scores.detach().softmax(1), kinds)
        if self.each_batch:
            self.log("auroc", self.auroc.compute(), prog_bar=True)
        return loss

    def on_train_epoch_end(self):
        self.log("auroc_epoch", self.auroc.compute())
        self.auroc.reset()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), 2e-3)


class Clock(L.Callback):
    def __init__(self, pace):
        self.pace = pace

    def on_train_batch_end(self, trainer, *rest):
        if self.pace.done():
            trainer.should_stop = True


def cloth(rolls):
    generator = torch.Generator().manual_seed(8)
    kinds = torch.randint(0, KINDS, (rolls,), generator=generator)
    centres = torch.randn(KINDS, FEATURES, generator=generator)
    return TensorDataset(centres[kinds] + 2 * torch.randn(rolls, FEATURES, generator=generator), kinds)


def main():
    args = options()
    torch.set_num_threads(1)
    loader = DataLoader(cloth(128 * 90), batch_size=128, shuffle=True, num_workers=1, persistent_workers=True)
    pace = Pace(args.seconds)
    trainer = L.Trainer(accelerator="cpu", max_epochs=-1, min_epochs=0, logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, callbacks=[Clock(pace)])
    trainer.fit(FaultFinder(each_batch=not args.fix), loader)
    pace.show()


if __name__ == "__main__":
    main()
