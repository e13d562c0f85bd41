"""Lightning: recommends songs from who listened to what, factors of listeners and songs, trained with Trainer.fit.

--fix: ModelCheckpoint(every_n_train_steps=1 -> 1000)."""
import logging
import tempfile
import warnings

import lightning as L
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from pace import Pace, options

LISTENERS, SONGS, WIDTH = 60000, 90000, 32


class Ranker(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.listeners = nn.Embedding(LISTENERS, WIDTH, sparse=True)
        self.songs = nn.Embedding(SONGS, WIDTH, sparse=True)

    def training_step(self, batch, _):
        listener, liked, skipped = batch
        who = self.listeners(listener)
        better = (who * self.songs(liked)).sum(-1) - (who * self.songs(skipped)).sum(-1)
        return -nn.functional.logsigmoid(better).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.5)


class Count(Callback):
    def __init__(self, pace):
        self.pace = pace

    def on_train_batch_end(self, trainer, *_):
        if self.pace.done():
            trainer.should_stop = True


def main():
    args = options()
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    torch.manual_seed(1)
    count = 200000
    plays = TensorDataset(torch.randint(LISTENERS, (count,)), torch.randint(SONGS, (count,)), torch.randint(SONGS, (count,)))
    loader = DataLoader(plays, batch_size=256, num_workers=1, persistent_workers=True)
    pace = Pace(args.seconds)
    with tempfile.TemporaryDirectory() as folder:
        keep = ModelCheckpoint(folder, filename="ranker-{step}", every_n_train_steps=1000 if args.fix else 1, save_top_k=1)
        trainer = L.Trainer(max_epochs=1000, accelerator="cpu", logger=False, callbacks=[Count(pace), keep], enable_progress_bar=False, enable_model_summary=False, default_root_dir=folder)
        trainer.fit(Ranker(), loader)
        pace.show()


if __name__ == "__main__":
    main()
