"""Which genus an orchid's field note speaks of; short epochs, a validation look after each."""
import json
import os
import random
import shutil
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

WORDS = 40_000
GENERA = 12


def make_notes(folder):
    rng = random.Random(4)
    names = [f"w{rng.randrange(10**9):09d}{i}" for i in range(WORDS)]
    with open(os.path.join(folder, "lexicon.json"), "w") as out:
        json.dump([{"word": w, "count": rng.randrange(1000), "forms": [w + "s", w + "ed"]} for w in names], out)
    notes = []
    for _ in range(384):
        genus = rng.randrange(GENERA)
        notes.append((" ".join(names[(genus * 997 + rng.randrange(900)) % WORDS] for _ in range(30)), genus))
    return notes


class FieldNotes(Dataset):
    def __init__(self, notes, folder):
        self.notes, self.folder = notes, folder
        self.lexicon = None

    def load_lexicon(self):
        with open(os.path.join(self.folder, "lexicon.json")) as f:
            rows = json.load(f)
        self.lexicon = {}
        for number, row in enumerate(sorted(rows, key=lambda r: -r["count"])):
            for form in (row["word"], *row["forms"]):
                self.lexicon[form] = number

    def __len__(self):
        return len(self.notes)

    def __getitem__(self, i):
        if self.lexicon is None:        # every worker has its own copy
            self.load_lexicon()
        text, genus = self.notes[i]
        ids = [self.lexicon[w] % 20_000 for w in text.split()]
        return torch.tensor(ids), genus


class NoteNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(20_000, 24)
        self.head = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, GENERA))

    def forward(self, ids):
        return self.head(self.bag(ids))


def main():
    opts = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="orchids")
    try:
        data = FieldNotes(make_notes(folder), folder)
        loader = DataLoader(data, batch_size=32, shuffle=True, num_workers=2, persistent_workers=opts.fix)
        model = NoteNet()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        pace, over = Pace(opts.seconds), False
        while not over:
            for ids, genus in loader:
                loss = nn.functional.cross_entropy(model(ids), genus)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                over = pace.done()
                if over:
                    break
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
