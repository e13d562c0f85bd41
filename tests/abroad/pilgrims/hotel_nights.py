"""Will the guest book? Click rows joined with what is known of guest and house."""
import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader

from pace import Pace, options

GUESTS, HOUSES, CLICKS = 20_000, 1500, 40_000
TOWNS = [f"town{i}" for i in range(12)]


def tables():
    rng = np.random.default_rng(2)
    guests = pd.DataFrame({"guest": np.arange(GUESTS), "age": rng.integers(18, 80, GUESTS),
                           "spent": rng.gamma(2, 100, GUESTS), "device": rng.choice(["phone", "desk", "pad"], GUESTS)})
    houses = pd.DataFrame({"house": np.arange(HOUSES), "stars": rng.integers(1, 6, HOUSES),
                           "price": rng.gamma(3, 40, HOUSES), "town": rng.choice(TOWNS, HOUSES)})
    clicks = pd.DataFrame({"guest": rng.integers(0, GUESTS, CLICKS), "house": rng.integers(0, HOUSES, CLICKS),
                           "nights": rng.integers(1, 9, CLICKS), "booked": rng.integers(0, 2, CLICKS)})
    return guests, houses, clicks


class Joined:
    """The collate function: looks everything up for the rows of a batch."""

    def __init__(self, guests, houses):
        self.guests, self.houses = guests, houses

    def __call__(self, rows):
        frame = pd.DataFrame(rows, columns=["guest", "house", "nights", "booked"])
        frame = frame.merge(self.guests, on="guest", how="left").merge(self.houses, on="house", how="left")
        frame["town"] = pd.Categorical(frame["town"], TOWNS)
        frame["device"] = pd.Categorical(frame["device"], ["phone", "desk", "pad"])
        frame = pd.get_dummies(frame, columns=["town", "device"], dtype=float)
        label = torch.tensor(frame.pop("booked").to_numpy(), dtype=torch.float32)
        return torch.tensor(frame.drop(columns=["guest", "house"]).to_numpy(float), dtype=torch.float32), label


class Ready:
    """The same with the two tables turned into arrays once."""

    def __init__(self, guests, houses):
        self.guests = pd.get_dummies(guests.drop(columns="guest"), dtype=float).to_numpy(np.float32)
        self.houses = pd.get_dummies(houses.drop(columns="house"), dtype=float).to_numpy(np.float32)

    def __call__(self, rows):
        rows = np.array(rows)
        both = np.concatenate([rows[:, 2:3].astype(np.float32), self.guests[rows[:, 0]], self.houses[rows[:, 1]]], 1)
        return torch.from_numpy(both), torch.from_numpy(rows[:, 3].astype(np.float32))


def main():
    args = options()
    torch.set_num_threads(1)
    guests, houses, clicks = tables()
    collate = (Ready if args.fix else Joined)(guests, houses)
    loader = DataLoader(clicks.to_numpy().tolist(), batch_size=256, shuffle=True, collate_fn=collate, drop_last=True)
    net = nn.Sequential(nn.LazyBatchNorm1d(), nn.LazyLinear(64), nn.ReLU(), nn.Linear(64, 1))
    net(next(iter(loader))[0])
    adam = torch.optim.Adam(net.parameters(), 1e-3)
    pace, over = Pace(args.seconds), False
    while not over:
        for rows, booked in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(net(rows)[:, 0], booked)
            adam.zero_grad()
            loss.backward()
            adam.step()
            if over := pace.done():
                break
    pace.show()


if __name__ == "__main__":
    main()
