"""Which modulation does a radio signal have? IQ recordings, spectra as the network's input, with Lightning."""
import logging
import warnings

import lightning as L
import numpy as np
import torch
from scipy import signal
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

KINDS = ["bpsk", "qpsk", "qam16", "fm"]
LENGTH = 4096


class Recordings(Dataset):
    def __init__(self, count=400):
        rng = np.random.default_rng(3)
        self.iq = rng.normal(size=(count, LENGTH, 2)).astype(np.float32)
        self.kind = rng.integers(0, len(KINDS), count)

    def __len__(self):
        return 100_000

    def __getitem__(self, number):
        row = number % len(self.iq)
        return torch.from_numpy(self.iq[row]), int(self.kind[row])


class ModulationNet(L.LightningModule):
    def __init__(self, pace, batched):
        super().__init__()
        self.pace, self.batched = pace, batched
        self.register_buffer("window", torch.hann_window(128), persistent=False)
        self.body = nn.Sequential(nn.Conv2d(1, 8, 5, stride=3), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
                                  nn.Linear(64, len(KINDS)))

    def spectrum(self, recording):
        """Of one recording, smoothed over the frequencies."""
        samples = recording[:, 0].numpy() + 1j * recording[:, 1].numpy()
        _, _, power = signal.spectrogram(signal.detrend(samples, type="constant"), nperseg=128, noverlap=96, return_onesided=False)
        power = signal.savgol_filter(np.log(power + 1e-9), 9, 2, axis=0)
        return torch.from_numpy(power.astype(np.float32))[None]

    def spectra(self, recordings):
        bins = torch.stft(torch.view_as_complex(recordings), 128, hop_length=32, window=self.window, center=False, return_complex=True, onesided=False)
        return torch.log(bins.real ** 2 + bins.imag ** 2 + 1e-9)[:, None]

    def on_after_batch_transfer(self, batch, dataloader_idx):
        recordings, kind = batch
        if self.batched:
            return self.spectra(recordings), kind
        return torch.stack([self.spectrum(recording) for recording in recordings]), kind

    def training_step(self, batch, batch_idx):
        spectra, kind = batch
        return nn.functional.cross_entropy(self.body(spectra), kind)

    def on_train_batch_end(self, outputs, batch, batch_idx):
        if self.pace.done():
            self.trainer.should_stop = True

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-3)


def main():
    asked = options()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    pace = Pace(asked.seconds)
    trainer = L.Trainer(accelerator="cpu", max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(ModulationNet(pace, asked.fix), DataLoader(Recordings(), batch_size=32, shuffle=True, num_workers=1))
    pace.show()


if __name__ == "__main__":
    main()
