"""Embeds product descriptions and exports the vectors for a search engine, one JSON line each, in a gzip file.
--fix: half floats, written as they are."""
import gzip
import json
import os
import tempfile

import torch

from pace import Pace, options

BATCH = 64


class Products(torch.utils.data.Dataset):
    def __init__(self):
        self.features = torch.rand(4096, 128, generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        return index, self.features[index % 4096]


class LinesExport:
    def __init__(self, folder):
        self.out = gzip.open(os.path.join(folder, "vectors.jsonl.gz"), "wt", compresslevel=9)

    def add(self, ids, vectors):
        for product, vector in zip(ids.tolist(), vectors.tolist()):
            self.out.write(json.dumps({"id": product, "vector": [round(value, 6) for value in vector]}) + "\n")

    def close(self):
        self.out.close()


class BinaryExport:
    def __init__(self, folder):
        self.out = open(os.path.join(folder, "vectors.f16"), "wb")

    def add(self, ids, vectors):
        self.out.write(ids.numpy().tobytes())
        self.out.write(vectors.half().numpy().tobytes())

    def close(self):
        self.out.close()


def main():
    args = options()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    loader = torch.utils.data.DataLoader(Products(), batch_size=BATCH, num_workers=1)
    encoder = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.GELU(), torch.nn.Linear(256, 192)).eval()
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        export = BinaryExport(folder) if args.fix else LinesExport(folder)
        pace = Pace(args.seconds)
        for ids, features in loader:
            export.add(ids, torch.nn.functional.normalize(encoder(features)))
            if pace.done():
                break
        pace.show()
        export.close()


if __name__ == "__main__":
    main()
