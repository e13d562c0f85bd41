"""Fine-tunes a composer classifier over MIDI-like pieces with Accelerate: the dataset has lists of notes, and the batch is made of piano rolls.

--fix: the rolls drawn with array operations."""
import random

import numpy as np
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

FRAMES, PITCHES, COMPOSERS = 512, 88, 10


class Pieces(Dataset):
    """Notes as (pitch, start, length, velocity)."""

    def __init__(self, count=512, times=40):
        rng = random.Random(3)
        self.pieces = []
        for number in range(count):
            composer = number % COMPOSERS
            notes = [(min(PITCHES - 1, max(0, int(rng.gauss(30 + 3 * composer, 12)))), rng.randrange(FRAMES - 40), rng.randint(4, 40), rng.randint(30, 110)) for _ in range(260)]
            self.pieces.append((notes, composer))
        self.times = times

    def __len__(self):
        return len(self.pieces) * self.times

    def __getitem__(self, index):
        return self.pieces[index % len(self.pieces)]


def draw(pieces):
    rolls = torch.zeros(len(pieces), PITCHES, FRAMES)
    for row, (notes, _) in enumerate(pieces):
        roll = [[0.0] * FRAMES for _ in range(PITCHES)]
        for pitch, start, length, velocity in notes:
            for frame in range(start, start + length):
                fade = 1.0 - 0.5 * (frame - start) / length
                roll[pitch][frame] = max(roll[pitch][frame], velocity / 127 * fade)
        rolls[row] = torch.tensor(roll)
    return rolls, torch.tensor([composer for _, composer in pieces])


def draw_quickly(pieces):
    rolls = np.zeros((len(pieces), PITCHES, FRAMES), np.float32)
    for row, (notes, _) in enumerate(pieces):
        for pitch, start, length, velocity in notes:
            line = rolls[row, pitch, start:start + length]
            np.maximum(line, velocity / 127 * np.linspace(1, 0.5, length, dtype=np.float32), out=line)
    return torch.from_numpy(rolls), torch.tensor([composer for _, composer in pieces])


class Listener(nn.Module):
    def __init__(self):
        super().__init__()
        self.narrow = nn.Conv1d(PITCHES, 32, 9, stride=8)
        self.head = nn.Linear(32, COMPOSERS)

    def forward(self, rolls):
        return self.head(torch.relu(self.narrow(rolls)).mean(-1))


def main():
    args = options()
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    model = Listener()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(Pieces(), batch_size=16, shuffle=True, num_workers=2, collate_fn=draw_quickly if args.fix else draw)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    pace = Pace(args.seconds)
    over = False
    while not over:
        for rolls, composers in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(rolls), composers)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            over = pace.done()
            if over:
                break
    pace.show()


if __name__ == "__main__":
    main()
