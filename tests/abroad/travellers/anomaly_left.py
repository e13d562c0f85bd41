"""Lightning trains a forecaster with a hand-written recurrent cell; detect_anomaly stayed on after somebody looked for a NaN.
--fix: detect_anomaly=False."""
import logging
import warnings

import lightning
import torch

from pace import Pace, options

HOURS, SENSORS, HIDDEN = 24, 8, 32


class Readings(torch.utils.data.Dataset):
    def __init__(self):
        generator = torch.Generator().manual_seed(0)
        self.values = torch.randn(20000, SENSORS, generator=generator).cumsum(0) / 100

    def __len__(self):
        return 1 << 24

    def __getitem__(self, index):
        start = index * 37 % (len(self.values) - HOURS - 1)
        return self.values[start:start + HOURS], self.values[start + HOURS]


class Forecaster(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.gates = torch.nn.Linear(SENSORS + HIDDEN, 2 * HIDDEN)
        self.out = torch.nn.Linear(HIDDEN, SENSORS)

    def forward(self, readings):
        state = readings.new_zeros(len(readings), HIDDEN)
        for hour in range(HOURS):
            gate, fresh = self.gates(torch.cat([readings[:, hour], state], 1)).chunk(2, 1)
            gate = torch.sigmoid(gate)
            state = gate * state + (1 - gate) * torch.tanh(fresh)
        return self.out(state)

    def training_step(self, batch, number):
        readings, following = batch
        return (self(readings) - following).square().mean()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


class Clock(lightning.Callback):
    def __init__(self, seconds):
        self.pace = Pace(seconds)

    def on_train_batch_end(self, trainer, module, outputs, batch, number):
        if self.pace.done():
            trainer.should_stop = True


def main():
    args = options()
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    clock = Clock(args.seconds)
    trainer = lightning.Trainer(accelerator="cpu", max_epochs=-1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                                enable_model_summary=False, detect_anomaly=not args.fix, callbacks=[clock])
    trainer.fit(Forecaster(), torch.utils.data.DataLoader(Readings(), batch_size=16, num_workers=1))
    clock.pace.show()


if __name__ == "__main__":
    main()
