"""Completes prompts with a GRU, character by character."""
import torch
from torch.utils.data import DataLoader

from pace import options, timed

TEXT = "the quick brown fox jumps over the lazy dog and then sleeps under the old oak tree " * 40


class Prompts:
    def __init__(self, length, repeat):
        self.length, self.repeat = length, repeat

    def __len__(self):
        return 1 << 24

    def __getitem__(self, i):
        at = 0 if self.repeat else (i * 7919) % (len(TEXT) - self.length)
        return torch.tensor([ord(c) for c in TEXT[at:at + self.length]])


class Writer(torch.nn.Module):
    def __init__(self, width=192):
        super().__init__()
        self.embed = torch.nn.Embedding(128, width)
        self.cell = torch.nn.GRU(width, width, num_layers=2, batch_first=True)
        self.out = torch.nn.Linear(width, 128)

    @torch.inference_mode()
    def complete(self, prompt, tokens):
        _, state = self.cell(self.embed(prompt))
        last, written = prompt[:, -1:], []
        for _ in range(tokens):
            y, state = self.cell(self.embed(last), state)
            last = torch.multinomial(self.out(y[:, -1]).softmax(-1), 1)
            written.append(last)
        return torch.cat(written, 1)


args = options()
torch.set_num_threads(1)
writer = Writer().eval()
lines = 0
for prompt in timed(DataLoader(Prompts(40, args.fix2), batch_size=16, num_workers=1), args.seconds):
    lines += len(writer.complete(prompt, 12 if args.fix else 48))
