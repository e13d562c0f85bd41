"""A spelling corrector over letters; torchmetrics tells the character and word error rate of each batch. --fix: of each 40th batch."""
import numpy as np
import torch
import torchmetrics

from pace import Pace, options

LETTERS = " etaoinshrdlucmfwypvbgk"
LENGTH = 100


class Noisy(torch.utils.data.Dataset):
    """Lines of text and the same with wrong letters."""

    def __init__(self):
        self.lines = np.random.default_rng(0).integers(0, len(LETTERS), size=(512, LENGTH))

    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        line = self.lines[index % len(self.lines)]
        wrong = np.where(rng.random(LENGTH) < 0.15, rng.integers(0, len(LETTERS), LENGTH), line)
        return wrong, line


class Corrector(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(len(LETTERS), 32)
        self.near = torch.nn.Conv1d(32, 32, 3, padding=1)
        self.head = torch.nn.Linear(32, len(LETTERS))

    def forward(self, letters):
        x = self.embed(letters)
        return self.head(x + self.near(x.transpose(1, 2)).relu().transpose(1, 2))


def texts(batch):
    return ["".join(LETTERS[k] for k in line) for line in batch.tolist()]


def main():
    args = options()
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(Noisy(), batch_size=16, num_workers=1)
    model = Corrector()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    metrics = torchmetrics.MetricCollection([torchmetrics.text.CharErrorRate(), torchmetrics.text.WordErrorRate()])
    interval = 40 if args.fix else 1
    pace = Pace(args.seconds)
    for number, (wrong, right) in enumerate(loader, 1):
        scores = model(wrong)
        loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), right.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if number % interval == 0:
            metrics.update(texts(scores.argmax(2)), texts(right))
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    main()
