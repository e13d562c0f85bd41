"""A stream of texts that a function of `datasets` turns into features."""
import datasets
import torch
from torch.utils.data import DataLoader

from pace import Pace, options


def texts(parts):
    for part in parts:
        for n in range(1_000_000):
            yield {"text": " ".join(f"w{(n * k + part) % 5003}" for k in range(1, 180))}


def features(example):
    counts = [0.0] * 256
    for word in example["text"].split():
        h = 2166136261
        for c in word:
            h = ((h ^ ord(c)) * 16777619) & 0xFFFFFFFF
        counts[h % 256] += 1
    return {"x": counts}


def main():
    args = options()
    torch.set_num_threads(1)
    stream = datasets.IterableDataset.from_generator(texts, gen_kwargs={"parts": [0, 1]})
    stream = stream.map(features, remove_columns=["text"]).with_format("torch")
    loader = DataLoader(stream, batch_size=16, num_workers=2 if args.fix else 0)
    net = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 256))
    optimiser = torch.optim.Adam(net.parameters())
    pace = Pace(args.seconds)
    for batch in loader:
        optimiser.zero_grad()
        (net(batch["x"]) - batch["x"]).square().mean().backward()
        optimiser.step()
        if pace.tick():
            break
    pace.show()


if __name__ == "__main__":
    main()
