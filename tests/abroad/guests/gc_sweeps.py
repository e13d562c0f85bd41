"""A knowledge graph as Python objects in memory, triples with negatives by a thread; the loop calls gc.collect() after each batch, against leaks.
--fix: gc.freeze() after all is made."""
import gc
import queue
import random
import threading

import torch

from pace import Pace, options

ENTITIES, RELATIONS, WIDTH = 10000, 20, 32


class Entity:
    __slots__ = ("number", "edges", "names")

    def __init__(self, number):
        self.number, self.edges, self.names = number, [], {"label": f"Q{number}"}


def graph(draw):
    entities = [Entity(number) for number in range(ENTITIES)]
    for entity in entities:
        for _ in range(8):
            entity.edges.append((draw.randrange(RELATIONS), entities[draw.randrange(ENTITIES)], [draw.random()]))
    return entities


def triples(entities, draw, ready):
    while True:
        rows = []
        for entity in draw.choices(entities, k=64):
            relation, other, _ = draw.choice(entity.edges)
            rows.append((entity.number, relation, other.number, draw.randrange(ENTITIES)))
        ready.put(torch.tensor(rows))


class TransE(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.entity = torch.nn.Embedding(ENTITIES, WIDTH, sparse=True)
        self.relation = torch.nn.Embedding(RELATIONS, WIDTH, sparse=True)

    def forward(self, rows):
        head, tail, wrong = (self.entity(rows[:, k]) for k in (0, 2, 3))
        moved = head + self.relation(rows[:, 1])
        return torch.relu(1 + (moved - tail).norm(dim=1) - (moved - wrong).norm(dim=1)).mean()


def main():
    args = options()
    torch.set_num_threads(1)
    draw = random.Random(0)
    entities = graph(draw)
    ready = queue.Queue(8)
    threading.Thread(target=triples, args=(entities, draw, ready), name="triples", daemon=True).start()
    model = TransE()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if args.fix:
        gc.freeze()
    pace = Pace(args.seconds)
    while True:
        loss = model(ready.get())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        gc.collect()
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    main()
