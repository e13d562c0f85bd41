"""Routing of support tickets: a tokenizer of our own, kept once in a manager's process for all DataLoader workers."""
import os
import random
import re
import unicodedata
from multiprocessing.managers import BaseManager

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

LENGTH = 256
WORDS = ("printer invoice login refund café parcel späte password billing server crash slow screen order "
         "number account mail router update licence naïve contract meeting").split()


def make_tickets(count=300):
    rng = random.Random(1)
    return [" ".join(rng.choice(WORDS) + rng.choice(["", "s", "ing", f" #{rng.randrange(10 ** 6)}"])
                     for _ in range(400)) for _ in range(count)]


class TicketEncoder:
    def __init__(self, tickets):
        self.tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
        self.tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        self.tokenizer.train_from_iterator(tickets[:60], trainers.BpeTrainer(
            vocab_size=2000, special_tokens=["[UNK]", "[PAD]"], show_progress=False))
        self.tokenizer.enable_truncation(LENGTH)
        self.tokenizer.enable_padding(length=LENGTH, pad_id=1)

    def clean(self, text):
        text = "".join(c for c in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(c))
        text = re.sub(r"#\d+", "<number>", text)
        return re.sub(r"\s+", " ", text)

    def encode(self, text):
        return self.tokenizer.encode(self.clean(text)).ids


class EncoderManager(BaseManager):
    pass


EncoderManager.register("TicketEncoder", TicketEncoder)


class Tickets(Dataset):
    def __init__(self, tickets, encoder):
        self.tickets, self.encoder = tickets, encoder

    def __len__(self):
        return 200_000

    def __getitem__(self, index):
        ids = self.encoder.encode(self.tickets[index % len(self.tickets)])
        return torch.tensor(ids), index % 4


class EncodedTickets(Tickets):
    def __init__(self, tickets, encoder):
        super().__init__(tickets, encoder)
        self.table = torch.tensor([encoder.encode(text) for text in tickets])

    def __getitem__(self, index):
        return self.table[index % len(self.table)], index % 4


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(2000, 32)
        self.out = nn.Linear(32, 4)

    def forward(self, ids):
        return self.out(self.bag(ids))


def main():
    args = options()
    torch.set_num_threads(1)  # the model is tiny
    tickets = make_tickets()
    manager = EncoderManager()
    manager.start()
    if args.fix:
        dataset = EncodedTickets(tickets, manager.TicketEncoder(tickets))
    else:
        dataset = Tickets(tickets, manager.TicketEncoder(tickets))
    loader = DataLoader(dataset, batch_size=16, shuffle=True, num_workers=4)
    model = Router()
    optimizer, pace = torch.optim.SGD(model.parameters(), lr=0.1), Pace(args.seconds)
    for ids, queue in loader:
        loss = nn.functional.cross_entropy(model(ids), queue)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.done():
            break
    pace.show()
    del loader
    manager.shutdown()


if __name__ == "__main__":
    main()
