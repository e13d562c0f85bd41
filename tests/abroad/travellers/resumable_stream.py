"""torchdata's StatefulDataLoader, so that a preempted run can go on in the midst of an epoch; the stream's shuffle buffer is part of its state.
--fix: snapshot_every_n_steps 1 -> 200."""
import random

import torch
from torchdata.stateful_dataloader import StatefulDataLoader

from pace import Pace, options

BUFFER, WORDS = 4000, 48


class Sentences(torch.utils.data.IterableDataset):
    def __init__(self):
        self.chance, self.read, self.buffer = random.Random(0), 0, []

    def sentence(self):
        self.read += 1
        first = self.read * 31 % 4000
        return [(first + word * word) % 5000 for word in range(WORDS)]

    def __iter__(self):
        while len(self.buffer) < BUFFER:
            self.buffer.append(self.sentence())
        while True:
            place = self.chance.randrange(BUFFER)
            drawn, self.buffer[place] = self.buffer[place], self.sentence()
            yield torch.tensor(drawn)

    def state_dict(self):
        return {"read": self.read, "buffer": [list(words) for words in self.buffer], "chance": self.chance.getstate()}

    def load_state_dict(self, state):
        self.read, self.buffer = state["read"], state["buffer"]
        self.chance.setstate(state["chance"])


def main():
    args = options()
    torch.set_num_threads(1)
    loader = StatefulDataLoader(Sentences(), batch_size=16, num_workers=1, snapshot_every_n_steps=200 if args.fix else 1)
    embed = torch.nn.EmbeddingBag(5000, 32, sparse=True)
    head = torch.nn.Linear(32, 16)
    optimizer = torch.optim.SGD([*embed.parameters(), *head.parameters()], lr=0.1)
    pace = Pace(args.seconds)
    for words in loader:
        loss = torch.nn.functional.cross_entropy(head(embed(words[:, 1:])), words[:, 0] % 16)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    main()
