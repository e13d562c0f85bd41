"""Sentences of different lengths, padded and masked while they are put together."""
import random

import torch
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

PAD, MASK = 0, 1


class Corpus(Dataset):
    def __init__(self):
        draw = random.Random(0)
        self.lines = [[draw.randint(2, 199) for _ in range(draw.randint(40, 160))] for _ in range(1000)]

    def __len__(self):
        return 300_000

    def __getitem__(self, i):
        return self.lines[i % 1000]


class MaskingCollator:
    def __init__(self, chance=0.15):
        self.chance = chance

    def __call__(self, lines):
        longest = max(map(len, lines))
        inputs, targets = [], []
        for line in lines:
            tokens, wanted = [], []
            for token in line:
                if random.random() < self.chance:
                    tokens.append(MASK if random.random() < 0.8 else random.randint(2, 199))
                    wanted.append(token)
                else:
                    tokens.append(token)
                    wanted.append(-100)
            inputs.append(tokens + [PAD] * (longest - len(tokens)))
            targets.append(wanted + [-100] * (longest - len(wanted)))
        return torch.tensor(inputs), torch.tensor(targets)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(200, 16)
        self.out = torch.nn.Linear(16, 200)

    def forward(self, inputs, targets):
        chosen = targets != -100
        return torch.nn.functional.cross_entropy(self.out(self.embed(inputs[chosen])), targets[chosen])


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)
    model = Model()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    pace = Pace(args.seconds)
    for batch in DataLoader(Corpus(), batch_size=64, collate_fn=MaskingCollator(), num_workers=2 if args.fix else 1):
        loss = model(*batch)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if pace.tick():
            break
    pace.show()
