"""Routes support tickets to a team. Hugging Face datasets + a bag-of-embeddings classifier.

The masking of personal data is a transform of the dataset, so that we can change the rules without a new export.
With --fix it's done by .map() beforehand.
"""
import os
import random
import re
import tempfile

import datasets
import torch
from torch import nn
from torch.utils.data import DataLoader

from pace import Pace, options

os.environ["TOKENIZERS_PARALLELISM"] = "false"
datasets.disable_progress_bars()

TEAMS = ["billing", "network", "hardware", "other"]
PRODUCTS = [f"{maker}[ -]?{model}" for maker in ("Nova", "Zephyr", "Orbit", "Lumen", "Castor") for model in range(100, 112)]
RULES = [
    (re.compile(r"<[^>]+>"), " "),
    (re.compile(r"https?://\S+|www\.\S+"), " URL "),
    (re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+"), " MAIL "),
    (re.compile(r"\+?\d[\d /-]{6,}\d"), " PHONE "),
    (re.compile(r"\b[A-Z]{2}\d{2}(?: ?\w{4}){3,7}\b"), " IBAN "),
    (re.compile(r"(\w)\1{3,}"), r"\1\1"),
    (re.compile(r"\b(?:dear|hi|hello)\b[^,\n]{0,40},", re.I), " "),
] + [(re.compile(product, re.I), " PRODUCT ") for product in PRODUCTS] + [(re.compile(r"\s+"), " ")]


def write_tickets(path, count=640):
    rng = random.Random(3)
    words = "the router blinks invoice twice paid screen dark please help since monday refund cable slow again".split()
    rows = []
    for n in range(count):
        body = [rng.choice(words) for _ in range(260)]
        for _ in range(12):
            body.insert(rng.randrange(len(body)), rng.choice(["<br/>", "nova 104", "joe.b@mail.example", "0151 2345-6789",
                                                              "https://shop.example/x?id=9", "sooooooo", "Castor-111"]))
        rows.append({"text": "Hello Mrs Support, " + " ".join(body), "team": n % len(TEAMS)})
    datasets.Dataset.from_list(rows).to_json(path)


def clean(text):
    for pattern, replacement in RULES:
        text = pattern.sub(replacement, text)
    return text.strip().lower()


def encode(batch):
    return {"text": [clean(text) for text in batch["text"]], "team": batch["team"]}


def collate(rows):
    ids, offsets = [], []
    for row in rows:
        offsets.append(len(ids))
        ids.extend(hash(word) % 5000 for word in row["text"].split())
    return torch.tensor(ids), torch.tensor(offsets), torch.tensor([row["team"] for row in rows])


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(5000, 32)
        self.head = nn.Sequential(nn.ReLU(), nn.Linear(32, len(TEAMS)))

    def forward(self, ids, offsets):
        return self.head(self.bag(ids, offsets))


def main():
    args = options()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tickets.jsonl")
        write_tickets(path)
        tickets = datasets.load_dataset("json", data_files=path, split="train", cache_dir=os.path.join(folder, "cache"))
        if args.fix:
            tickets = tickets.map(encode, batched=True)
        else:
            tickets.set_transform(encode)
        loader = DataLoader(tickets, batch_size=32, shuffle=True, collate_fn=collate)
        model = Router()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        pace, over = Pace(args.seconds), False
        while not over:
            for ids, offsets, team in loader:
                loss = nn.functional.cross_entropy(model(ids, offsets), team)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                over = pace.done()
                if over:
                    break
        pace.show()


if __name__ == "__main__":
    main()
