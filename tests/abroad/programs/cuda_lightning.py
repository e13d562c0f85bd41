"""Lightning on a device; one worker computes the items. The fix is four workers."""
import logging
import warnings

import torch
from torch.utils.data import DataLoader, Dataset

import cuda
import harness

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
import lightning  # noqa: E402


class Items(Dataset):
    def __len__(self):
        return 1 << 18

    def __getitem__(self, index):
        harness.burn(0.0008)
        return torch.full((1024,), float(index)), 0


class Model(lightning.LightningModule):
    def __init__(self, seconds):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(1024, 8192), torch.nn.ReLU(), *[torch.nn.Linear(8192, 8192) for _ in range(4)],
                                          torch.nn.Linear(8192, 10))
        self.meter = cuda.Meter(seconds)

    def training_step(self, batch, _):
        items, labels = batch
        loss = torch.nn.functional.cross_entropy(self.layers(items), labels)
        if self.meter.tick():
            self.trainer.should_stop = True
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-3)


if __name__ == "__main__":
    args = cuda.arguments()
    model = Model(args.seconds)
    trainer = lightning.Trainer(accelerator="gpu", devices=1, max_epochs=1, min_epochs=0, logger=False, enable_checkpointing=False,
                                enable_progress_bar=False, enable_model_summary=False, precision="bf16-mixed")
    trainer.fit(model, DataLoader(Items(), batch_size=16, num_workers=4 if args.fix else 1))
    model.meter.show()
