"""Which wine does which guest take: a two-table recommender trained with Lightning."""
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

GUESTS, WINES, DIM = 200_000, 30_000, 16


class Pairs(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.guest = nn.Embedding(GUESTS, DIM, sparse=True)
        self.wine = nn.Embedding(WINES, DIM, sparse=True)

    def training_step(self, batch, _):
        guest, wine, taken = batch
        score = (self.guest(guest) * self.wine(wine)).sum(1)
        return nn.functional.binary_cross_entropy_with_logits(score, taken)

    def configure_optimizers(self):
        return torch.optim.SparseAdam(self.parameters(), lr=1e-2)


class Counting(Callback):
    def __init__(self, pace):
        self.pace = pace

    def on_train_batch_end(self, trainer, *_):
        if self.pace.done():
            trainer.should_stop = True


def main():
    args = options()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    n = 60_000
    data = TensorDataset(torch.randint(GUESTS, (n,)), torch.randint(WINES, (n,)), torch.rand(n).round())
    loader = DataLoader(data, batch_size=128, shuffle=True)
    pace, where = Pace(args.seconds), tempfile.mkdtemp(prefix="vine")
    keep = ModelCheckpoint(dirpath=where, save_top_k=1, every_n_train_steps=1000 if args.fix else 4)
    trainer = L.Trainer(max_epochs=-1, accelerator="cpu", devices=1, logger=False, enable_progress_bar=False,
                        enable_model_summary=False, callbacks=[Counting(pace), keep])
    try:
        trainer.fit(Pairs(), loader)
    finally:
        shutil.rmtree(where, ignore_errors=True)
    pace.show()


if __name__ == "__main__":
    main()
