"""Lightning with short epochs and persistent workers, but the Trainer makes the loader anew for each epoch (reload_dataloaders_every_n_epochs=1).
--fix: 0, so the workers live on."""
import logging
import tempfile
import warnings

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
import lightning
import torch
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options


class Windows(Dataset):
    def __init__(self):
        self.series = torch.randn(20000).cumsum(0)

    def __len__(self):
        return 16 * 12

    def __getitem__(self, index):
        start = (index * 7919) % 19000
        window = self.series[start:start + 65]
        window = (window - window.mean()) / (window.std() + 1e-6)
        return window[:64], window[64]


class Data(lightning.LightningDataModule):
    def train_dataloader(self):
        return DataLoader(Windows(), batch_size=16, shuffle=True, num_workers=2, persistent_workers=True)


class Forecast(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 1))

    def training_step(self, batch, index):
        x, y = batch
        return torch.nn.functional.mse_loss(self.net(x).squeeze(1), y)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


class Counter(lightning.Callback):
    def __init__(self, seconds):
        self.pace = Pace(seconds)

    def on_train_batch_end(self, trainer, *_):
        if self.pace.done():
            trainer.should_stop = True


def main():
    args = options()
    torch.set_num_threads(1)
    counter = Counter(args.seconds)
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(accelerator="cpu", max_epochs=-1, callbacks=[counter], logger=False, enable_checkpointing=False,
                                    enable_progress_bar=False, enable_model_summary=False, default_root_dir=folder,
                                    reload_dataloaders_every_n_epochs=0 if args.fix else 1)
        trainer.fit(Forecast(), datamodule=Data())
    counter.pace.show()


if __name__ == "__main__":
    main()
