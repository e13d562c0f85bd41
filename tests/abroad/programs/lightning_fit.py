"""Lightning's Trainer with one worker that computes; the fix is two workers."""
import logging
import time
import warnings

import lightning
import torch
from torch.utils.data import DataLoader, Dataset

import harness


class Items(Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        harness.burn(0.002)
        return torch.full((64,), float(index))


class Model(lightning.LightningModule):
    def __init__(self, seconds):
        super().__init__()
        self.layer = torch.nn.Linear(64, 1)
        self.seconds, self.begin, self.count = seconds, None, 0

    def training_step(self, batch, number):
        if self.begin is None:
            self.begin = time.monotonic()
        else:
            self.count += 1
        if time.monotonic() - self.begin > self.seconds:
            self.trainer.should_stop = True
        return self.layer(batch).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-9)


if __name__ == "__main__":
    args = harness.options()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    model = Model(args.seconds)
    trainer = lightning.Trainer(accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                                enable_model_summary=False, max_epochs=1)
    trainer.fit(model, DataLoader(Items(), batch_size=8, num_workers=2 if args.fix else 1))
    print("rate %.3f batches/s" % (model.count / (time.monotonic() - model.begin)), flush=True)
