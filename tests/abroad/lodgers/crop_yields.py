"""Lightning predicts the yield of fields; somebody once ran out of memory, and since then a callback tidies up after each batch.

--fix: it tidies up after each epoch."""
import gc
import logging
import random
import warnings

import lightning
import torch
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
CROPS = ["wheat", "rye", "oats", "maize", "barley"]


class Fields(Dataset):
    """A record a field, as the agency's XML had it."""

    def __init__(self, count=60000):
        rng = random.Random(8)
        self.records = [{"crop": rng.choice(CROPS), "soil": {"ph": rng.uniform(4, 8), "clay": rng.random()}, "rain": [rng.expovariate(1) for _ in range(12)], "owner": {"parish": [rng.randrange(90)]}} for _ in range(count)]

    def __len__(self):
        return len(self.records)

    def __getitem__(self, number):
        record = self.records[number]
        one_hot = [float(record["crop"] == crop) for crop in CROPS]
        return torch.tensor(one_hot + [record["soil"]["ph"], record["soil"]["clay"]] + record["rain"]), torch.tensor(sum(record["rain"]) * record["soil"]["clay"])


class Yield(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(19, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))

    def training_step(self, batch, _):
        fields, harvest = batch
        return torch.nn.functional.smooth_l1_loss(self.net(fields)[:, 0], harvest)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


class Tidy(lightning.Callback):
    def __init__(self, each_batch):
        self.each_batch = each_batch

    def on_train_batch_end(self, *_):
        if self.each_batch:
            gc.collect()

    def on_train_epoch_end(self, *_):
        gc.collect()


class Clock(lightning.Callback):
    def __init__(self, pace):
        self.pace = pace

    def on_train_batch_end(self, trainer, *_):
        trainer.should_stop = self.pace.done()


def main():
    args = options()
    torch.set_num_threads(1)
    pace = Pace(args.seconds)
    trainer = lightning.Trainer(accelerator="cpu", max_epochs=-1, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, callbacks=[Tidy(not args.fix), Clock(pace)])
    trainer.fit(Yield(), DataLoader(Fields(), batch_size=32, shuffle=True, num_workers=1, persistent_workers=True))
    pace.show()


if __name__ == "__main__":
    main()
