"""A small character model, trained with plain torch in a Trainer class."""
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options


@dataclass
class Config:
    block: int = 96
    width: int = 96
    layers: int = 3
    heads: int = 4
    batch: int = 8
    vocab: int = 64


class Text(Dataset):
    def __init__(self, block, constant=False):
        self.data = np.random.default_rng(0).integers(0, 64, 2_000_000, dtype=np.uint8)
        self.block = block
        self.constant = torch.zeros(block + 1, dtype=torch.long) if constant else None

    def __len__(self):
        return 5_000_000

    def __getitem__(self, i):
        if self.constant is not None:
            return self.constant[:-1], self.constant[1:]
        at = (i * 7919) % (len(self.data) - self.block - 1)
        piece = torch.from_numpy(self.data[at:at + self.block + 1].astype(np.int64))
        return piece[:-1], piece[1:]


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads = c.heads
        self.norm1, self.norm2 = nn.LayerNorm(c.width), nn.LayerNorm(c.width)
        self.qkv, self.out = nn.Linear(c.width, 3 * c.width), nn.Linear(c.width, c.width)
        self.mlp = nn.Sequential(nn.Linear(c.width, 4 * c.width), nn.GELU(), nn.Linear(4 * c.width, c.width))

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, w))
        return x + self.mlp(self.norm2(x))


class CharModel(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.tok, self.pos = nn.Embedding(c.vocab, c.width), nn.Embedding(c.block, c.width)
        self.blocks = nn.Sequential(*[Block(c) for _ in range(c.layers)])
        self.head = nn.Linear(c.width, c.vocab)

    def forward(self, ids):
        return self.head(self.blocks(self.tok(ids) + self.pos(torch.arange(ids.shape[1]))))


class Trainer:
    def __init__(self, config, args):
        self.model = CharModel(config)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4)
        self.loader = DataLoader(Text(config.block, args.fix2), batch_size=config.batch, shuffle=False, num_workers=1)
        self.pace = Pace(args.seconds)

    def fit(self):
        for x, y in self.loader:
            loss = F.cross_entropy(self.model(x).flatten(0, 1), y.flatten())
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            if self.pace.over():
                break
        self.pace.report()


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)
    Trainer(Config(layers=1) if args.fix else Config(), args).fit()
