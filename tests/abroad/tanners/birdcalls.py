"""Tells bird species apart by their calls; a player process turns the field recordings (mu-law) into samples."""
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn

from pace import Pace, options

SPECIES, RATE, BATCH = 6, 2000, 16


def record_calls(folder, calls=96):
    """Short recordings as the field boxes keep them: one byte per sample, mu-law."""
    rng = np.random.default_rng(3)
    time = np.arange(RATE) / RATE
    for number in range(calls):
        species = number % SPECIES
        call = 0.6 * np.sin(2 * np.pi * (150 + 90 * species) * time) + rng.normal(0, 0.1, RATE)
        call = np.clip(call, -1, 1)
        code = np.sign(call) * np.log1p(255 * np.abs(call)) / np.log(256)
        (folder / f"call{number:03}_{species}.ul").write_bytes(((code + 1) * 127.5).astype(np.uint8).tobytes())


def expand(recording):
    """Mu-law bytes to linear samples."""
    samples = np.empty(len(recording), np.float32)
    for i, byte in enumerate(recording):
        code = byte / 127.5 - 1.0
        level = (256.0 ** abs(code) - 1.0) / 255.0
        samples[i] = level if code >= 0 else -level
    return samples


CODES = np.arange(256) / 127.5 - 1.0
LEVELS = (np.sign(CODES) * (256.0 ** np.abs(CODES) - 1.0) / 255.0).astype(np.float32)


def expand_by_table(recording):
    return LEVELS[np.frombuffer(recording, np.uint8)]


def player(folder, turn):
    """The player: writes [species, samples] of a random recording to its output, for ever."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    files = sorted(Path(folder).glob("*.ul"))
    rng = np.random.default_rng(5)
    while True:
        path = files[rng.integers(len(files))]
        species = np.float32(path.stem[-1])
        sys.stdout.buffer.write(species.tobytes() + turn(path.read_bytes()).tobytes())


class CallNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.filters = nn.Conv1d(1, 12, 64, stride=16)
        self.head = nn.Linear(12, SPECIES)

    def forward(self, samples):
        return self.head(self.filters(samples[:, None]).abs().mean(-1))


def main():
    args = options()
    torch.set_num_threads(1)
    folder = Path(tempfile.mkdtemp(prefix="birdcalls"))
    record_calls(folder)
    command = [sys.executable, __file__, "play-fast" if args.fix else "play", str(folder)]
    box = subprocess.Popen(command, stdout=subprocess.PIPE)
    model = CallNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    pace = Pace(args.seconds)
    while True:
        block = box.stdout.read(BATCH * (RATE + 1) * 4)
        calls = torch.from_numpy(np.frombuffer(block, np.float32).reshape(BATCH, -1).copy())
        loss = nn.functional.cross_entropy(model(calls[:, 1:]), calls[:, 0].long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.done():
            break
    box.terminate()
    box.wait()
    pace.show()
    shutil.rmtree(folder)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].startswith("play"):
        player(sys.argv[2], expand if sys.argv[1] == "play" else expand_by_table)
    else:
        main()
