"""How long will a pump last? Cox-like model on sensor aggregates, with Lightning.

The product owner wants to see the concordance index (share of pairs in the right order) live, for every batch.
"""
import logging
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from pace import Pace, options

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

SENSORS, BATCH = 24, 1024


def concordance(hours, failed, risk):
    """Harrell's C, as in the paper."""
    hours, failed, risk = hours.tolist(), failed.tolist(), risk.tolist()
    right = pairs = 0.0
    for i in range(len(hours)):
        if not failed[i]:
            continue
        for j in range(len(hours)):
            if hours[j] > hours[i]:
                pairs += 1
                if risk[i] > risk[j]:
                    right += 1
                elif risk[i] == risk[j]:
                    right += 0.5
    return right / max(pairs, 1.0)


def concordance_matrix(hours, failed, risk):
    pairs = (hours[None, :] > hours[:, None]) & (failed[:, None] > 0)
    right = (risk[:, None] > risk[None, :]).float() + 0.5 * (risk[:, None] == risk[None, :]).float()
    return ((right * pairs).sum() / pairs.sum().clamp(min=1)).item()


class PumpModel(L.LightningModule):
    def __init__(self, score):
        super().__init__()
        self.score = score
        self.net = nn.Sequential(nn.Linear(SENSORS, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))

    def training_step(self, batch, index):
        sensors, hours, failed = batch
        risk = self.net(sensors)[:, 0]
        order = torch.argsort(hours, descending=True)
        log_sum = torch.logcumsumexp(risk[order], 0)
        loss = -((risk[order] - log_sum) * failed[order]).sum() / failed.sum().clamp(min=1)
        self.log("train_c_index", self.score(hours, failed, risk.detach()))
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


class StopAfter(L.Callback):
    def __init__(self, pace):
        self.pace = pace

    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        if self.pace.done():
            trainer.should_stop = True


def pumps(count=BATCH * 20):
    generator = torch.Generator().manual_seed(8)
    sensors = torch.randn(count, SENSORS, generator=generator)
    hours = torch.exp(6 - sensors[:, 0] * 0.5 + torch.randn(count, generator=generator) * 0.3)
    failed = (torch.rand(count, generator=generator) < 0.6).float()
    return TensorDataset(sensors, hours, failed)


def main():
    args = options()
    torch.set_num_threads(1)
    loader = DataLoader(pumps(), batch_size=BATCH, shuffle=True, drop_last=True, num_workers=1, persistent_workers=True)
    pace = Pace(args.seconds)
    trainer = L.Trainer(accelerator="cpu", devices=1, max_epochs=-1, logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, callbacks=[StopAfter(pace)])
    trainer.fit(PumpModel(concordance_matrix if args.fix else concordance), loader)
    pace.show()


if __name__ == "__main__":
    main()
