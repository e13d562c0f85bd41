"""A lightning module with a callback that averages the weights."""
import copy
import logging
import warnings

import lightning as L
import torch
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Vectors(Dataset):
    def __init__(self, kept):
        self.kept = torch.ones(100) if kept else None

    def __len__(self):
        return 1_000_000

    def __getitem__(self, i):
        return self.kept if self.kept is not None else torch.full((100,), (i % 97) / 97).sin()


class AutoEncoder(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(100, 1500), torch.nn.ReLU(), torch.nn.Linear(1500, 1500),
                                       torch.nn.ReLU(), torch.nn.Linear(1500, 100))

    def training_step(self, batch, _):
        return torch.nn.functional.mse_loss(self.net(batch), batch)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


class WeightAverage(L.Callback):
    def __init__(self, every, decay=0.99):
        self.every, self.decay, self.average = every, decay, None

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if batch_idx % self.every:
            return
        state = copy.deepcopy(module.state_dict())
        if self.average is None:
            self.average = state
            return
        self.average = {k: self.decay * v + (1 - self.decay) * state[k] for k, v in self.average.items()}


class Rate(L.Callback):
    def __init__(self, seconds):
        self.pace = Pace(seconds)

    def on_train_batch_end(self, trainer, *_):
        if self.pace.tick():
            trainer.should_stop = True


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)
    rate = Rate(args.seconds)
    trainer = L.Trainer(max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False, accelerator="cpu",
                        enable_model_summary=False, callbacks=[WeightAverage(40 if args.fix else 1), rate])
    trainer.fit(AutoEncoder(), DataLoader(Vectors(args.fix2), batch_size=16, num_workers=1))
    rate.pace.show()
