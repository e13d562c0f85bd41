"""A spelling corrector learns from misspelt words; a pool of two processes misspells and numbers them, a word a task.

--fix: chunksize 1 -> 256."""
import itertools
import multiprocessing
import random

import torch
import torch.nn as nn

from pace import Pace, options

LETTERS = "abcdefghijklmnopqrstuvwxyz"
LENGTH = 12
WORDS = ["harbour", "lantern", "orchard", "whistle", "meadow", "thunder", "cabinet", "plaster", "kettle", "journey", "blanket", "feather"]


def misspell(number):
    rng = random.Random(number)
    word = WORDS[number % len(WORDS)]
    place = rng.randrange(len(word))
    wrong = word[:place] + rng.choice(LETTERS) + word[place + 1:]
    return [LETTERS.index(letter) + 1 for letter in wrong] + [0] * (LENGTH - len(wrong)), number % len(WORDS)


class Corrector(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(27, 8)
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(8 * LENGTH, 64), nn.ReLU(), nn.Linear(64, len(WORDS)))

    def forward(self, words):
        return self.layers(self.letters(words))


def main():
    args = options()
    torch.set_num_threads(1)
    with multiprocessing.Pool(2) as pool:
        model, batch_size = Corrector(), 512
        optimizer = torch.optim.Adam(model.parameters())
        pace = Pace(args.seconds)
        over = False
        for start in itertools.count(0, 40000):  # an epoch
            pairs = pool.imap(misspell, range(start, start + 40000), chunksize=256 if args.fix else 1)
            while batch := list(itertools.islice(pairs, batch_size)):
                words = torch.tensor([word for word, _ in batch])
                right = torch.tensor([label for _, label in batch])
                loss = nn.functional.cross_entropy(model(words), right)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                over = pace.done()
                if over:
                    break
            if over:
                break
        pace.show()


if __name__ == "__main__":
    main()
