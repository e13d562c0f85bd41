"""A LightningModule for signal segments whose training step runs a stack of dilated convolutions. --fix: two of them instead of eight."""
import logging
import warnings

import lightning as L
import torch
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Segments(Dataset):
    def __init__(self, cheap):
        self.cheap = torch.zeros(1, 256) if cheap else None

    def __len__(self):
        return 10_000_000

    def __getitem__(self, i):
        if self.cheap is not None:
            return self.cheap, 0
        return torch.randn(1, 256).cumsum(1), i % 4


class LitSegments(L.LightningModule):
    def __init__(self, depth, width=32):
        super().__init__()
        layers = [torch.nn.Conv1d(1, width, 3, padding=1)]
        for k in range(depth):
            layers += [torch.nn.Conv1d(width, width, 3, padding=2 ** (k % 5), dilation=2 ** (k % 5)), torch.nn.BatchNorm1d(width), torch.nn.ReLU()]
        self.net = torch.nn.Sequential(*layers)
        self.head = torch.nn.Linear(width, 4)

    def training_step(self, batch, index):
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self.head(self.net(x).mean(-1)), y)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


class StopAfter(L.Callback):
    def __init__(self, seconds):
        self.pace = Pace(seconds)

    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        if self.pace.over():
            trainer.should_stop = True


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)
    stop = StopAfter(args.seconds)
    trainer = L.Trainer(accelerator="cpu", max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                        enable_model_summary=False, callbacks=[stop])
    trainer.fit(LitSegments(2 if args.fix else 8), DataLoader(Segments(args.fix2), batch_size=16, num_workers=1))
    stop.pace.report()
