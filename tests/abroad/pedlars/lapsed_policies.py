"""Will the policy lapse?  Tabular model in Lightning with a running score on the progress page."""
import logging
import shutil
import tempfile
import warnings

import lightning as L
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset
from torchmetrics.classification import BinaryAUROC, BinaryAveragePrecision

from pace import Pace, options

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
FIELDS = 24


def write_policies(path, rows=150_000):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(rows, FIELDS)).astype("float32")
    lapse = (x[:, :5].sum(1) + rng.normal(0, 2, rows) > 1.5).astype("float32")
    pq.write_table(pa.table({**{f"f{i}": x[:, i] for i in range(FIELDS)}, "lapse": lapse}), path)


def read_policies(path):
    table = pq.read_table(path)
    x = np.stack([table[f"f{i}"].to_numpy() for i in range(FIELDS)], 1)
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(table["lapse"].to_numpy().copy()))


class LapseModel(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(FIELDS, 64), nn.ReLU(), nn.Linear(64, 1))

    def training_step(self, batch, _):
        x, y = batch
        logit = self.net(x).squeeze(1)
        return {"loss": nn.functional.binary_cross_entropy_with_logits(logit, y), "logit": logit.detach(), "y": y}

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), 1e-3)


class ScoreBoard(L.Callback):
    def __init__(self, each_batch):
        self.each_batch = each_batch
        self.auc, self.ap, self.latest = BinaryAUROC(), BinaryAveragePrecision(), {}

    def publish(self):
        self.latest = {"auc": float(self.auc.compute()), "ap": float(self.ap.compute())}

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        for metric in (self.auc, self.ap):
            metric.update(torch.sigmoid(outputs["logit"]), outputs["y"].int())
        if self.each_batch:
            self.publish()

    def on_train_epoch_end(self, trainer, module):
        self.publish()
        self.auc.reset(), self.ap.reset()


class Clock(L.Callback):
    def __init__(self, pace):
        self.pace = pace

    def on_train_batch_end(self, trainer, *_):
        if self.pace.done():
            trainer.should_stop = True


def main():
    opts = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="policies")
    try:
        write_policies(f"{folder}/policies.parquet")
        policies = read_policies(f"{folder}/policies.parquet")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    pace = Pace(opts.seconds)
    loader = DataLoader(policies, batch_size=None, sampler=BatchSampler(RandomSampler(policies), 1024, True))
    trainer = L.Trainer(max_epochs=-1, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False,
                        callbacks=[ScoreBoard(each_batch=not opts.fix), Clock(pace)])
    trainer.fit(LapseModel(), loader)
    pace.show()


if __name__ == "__main__":
    main()
