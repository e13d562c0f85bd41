"""Learns to spot odd telemetry: an autoencoder over frames that a decompressor hands over in a pipe."""
import os
import subprocess
import tempfile

import numpy as np
import torch

from pace import Pace, options

CHANNELS, BATCH, FRAMES = 48, 2048, 40_000


def downlink(folder, packer):
    """One pass of the satellite: slow drifts with noise, as 16-bit counts."""
    rng = np.random.default_rng(5)
    drift = np.cumsum(rng.normal(0, 2, (FRAMES, CHANNELS)), axis=0)
    counts = np.clip(drift + rng.normal(0, 6, drift.shape), -32000, 32000).astype("<i2")
    path = os.path.join(folder, "pass." + packer)
    with open(path, "wb") as out:
        subprocess.run([packer, "-c", "-q"], input=counts.tobytes(), stdout=out, check=True)
    return path


class Downlink:
    """Frames of a packed pass, over and over again."""

    def __init__(self, path, packer):
        self.command = [packer, "-dc", path]
        self.unpacker = None

    def start(self):
        self.unpacker = subprocess.Popen(self.command, stdout=subprocess.PIPE)

    def close(self):
        if self.unpacker is not None:
            self.unpacker.stdout.close()
            self.unpacker.terminate()
            self.unpacker.wait()
            self.unpacker = None

    def frames(self, count):
        size = count * CHANNELS * 2
        while True:
            if self.unpacker is None:
                self.start()
            data = self.unpacker.stdout.read(size)
            if len(data) == size:
                return np.frombuffer(data, dtype="<i2").reshape(count, CHANNELS)
            self.close()


class Autoencoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.narrow = torch.nn.Linear(CHANNELS, 12)
        self.wide = torch.nn.Linear(12, CHANNELS)

    def forward(self, frames):
        return self.wide(torch.tanh(self.narrow(frames)))


def main():
    args = options()
    torch.set_num_threads(1)
    packer = "zstd" if args.fix else "bzip2"
    model = Autoencoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with tempfile.TemporaryDirectory(prefix="downlink") as folder:
        link = Downlink(downlink(folder, packer), packer)
        pace = Pace(args.seconds)
        try:
            while True:
                frames = torch.from_numpy(link.frames(BATCH).astype(np.float32)) / 1000
                loss = torch.nn.functional.mse_loss(model(frames), frames)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if pace.done():
                    break
        finally:
            link.close()
    pace.show()


if __name__ == "__main__":
    main()
