"""Water level forecast for monitoring wells, with Lightning; every epoch is a short pass over fresh windows."""
import json
import logging
import os
import tempfile
import warnings

import lightning as L
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

WINDOW = 48


def write_registry(path, wells=4000):
    rng = np.random.default_rng(5)
    registry = {f"well-{i:05d}": {"depth": float(rng.uniform(5, 90)), "region": int(i % 12),
                                  "history": rng.normal(0, 1, 120).round(4).tolist()} for i in range(wells)}
    with open(path, "w") as out:
        json.dump(registry, out)


class WellWindows(Dataset):
    def __init__(self, path, length=320):
        self.path, self.length, self.registry = path, length, None

    def open_registry(self):
        with open(self.path) as source:
            registry = json.load(source)
        self.registry = [registry[name] for name in sorted(registry)]

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if self.registry is None:  # once in each worker
            self.open_registry()
        well = self.registry[np.random.randint(len(self.registry))]
        start = np.random.randint(len(well["history"]) - WINDOW - 1)
        history = torch.tensor(well["history"][start:start + WINDOW + 1])
        return history[:-1], history[-1:]


class Forecast(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(WINDOW, 64), nn.ReLU(), nn.Linear(64, 1))

    def training_step(self, batch, _):
        levels, following = batch
        return nn.functional.mse_loss(self.net(levels), following)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


class StopInTime(L.Callback):
    def __init__(self, pace):
        self.pace = pace

    def on_train_batch_end(self, trainer, *rest):
        if self.pace.done():
            trainer.should_stop = True


def main():
    args = options()
    torch.set_num_threads(1)  # the model is tiny
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="wells-") as folder:
        path = os.path.join(folder, "registry.json")
        write_registry(path)
        loader = DataLoader(WellWindows(path), batch_size=16, shuffle=True, num_workers=2,
                            persistent_workers=args.fix)
        pace = Pace(args.seconds)
        trainer = L.Trainer(max_epochs=-1, accelerator="cpu", logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False, callbacks=[StopInTime(pace)])
        trainer.fit(Forecast(), loader)
        pace.show()
        del trainer, loader


if __name__ == "__main__":
    main()
