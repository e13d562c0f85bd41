"""Churn score of telco customers from their last sessions (a GRU).

The whole event history is kept in memory as plain Python lists, as it comes out of the export.
Our job was killed once for memory, since then the loop cleans up behind every batch.
"""
import csv
import gc
import os
import random
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

CUSTOMERS, SESSIONS, USED = 14_000, 14, 12


def export_accounts(path):
    rng = random.Random(11)
    with open(path, "w", newline="") as out:
        writer = csv.writer(out)
        for customer in range(CUSTOMERS):
            writer.writerow([customer, rng.randint(1, 60), int(rng.random() < 0.2)])


class Customers(Dataset):
    def __init__(self, path):
        self.history, self.tenure, self.churned = {}, {}, {}
        rng = random.Random(12)
        with open(path, newline="") as rows:
            for customer, months, churned in csv.reader(rows):
                customer = int(customer)
                self.tenure[customer] = int(months)
                self.churned[customer] = float(churned)
                level = rng.random()
                self.history[customer] = [[day, level * day, 0.5] for day in range(SESSIONS)]

    def __len__(self):
        return len(self.history)

    def __getitem__(self, customer):
        sessions = torch.tensor(self.history[customer][-USED:])
        return sessions, self.tenure[customer] / 60, self.churned[customer]


class ChurnNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(3, 16, batch_first=True)
        self.head = nn.Linear(17, 1)

    def forward(self, sessions, tenure):
        _, state = self.gru(sessions)
        return self.head(torch.cat([state[0], tenure[:, None]], 1))[:, 0]


class Trainer:
    def __init__(self, model, tidy_every):
        self.model, self.tidy_every = model, tidy_every
        self.optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
        self.loss = nn.BCEWithLogitsLoss()
        self.seen = 0

    def fit_batch(self, sessions, tenure, churned):
        loss = self.loss(self.model(sessions, tenure.float()), churned.float())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.after_batch()

    def after_batch(self):
        self.seen += 1
        if self.seen % self.tidy_every == 0:
            gc.collect()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()


def main():
    args = options()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "accounts.csv")
        export_accounts(path)
        customers = Customers(path)
    loader = DataLoader(customers, batch_size=64, shuffle=True, num_workers=1, persistent_workers=True)
    trainer = Trainer(ChurnNet(), tidy_every=500 if args.fix else 1)
    pace = Pace(args.seconds)
    over = False
    while not over:
        for batch in loader:
            trainer.fit_batch(*batch)
            over = pace.done()
            if over:
                break
    pace.show()


if __name__ == "__main__":
    main()
