"""webdataset: samples of a tar file decoded by one worker; the fix is two workers and two files."""
import os
import tempfile

import torch
import webdataset

import harness


def decode(sample):
    harness.burn(0.003)
    return torch.full((64,), float(len(sample["bin"])))


if __name__ == "__main__":
    args = harness.options()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        for shard in range(2):
            with webdataset.TarWriter(os.path.join(folder, "%d.tar" % shard)) as tar:
                for index in range(6000):
                    tar.write({"__key__": "%06d" % index, "bin": bytes(100)})
        rows = webdataset.WebDataset(os.path.join(folder, "{0..1}.tar"), shardshuffle=False).map(decode).batched(8)
        loader = webdataset.WebLoader(rows, batch_size=None, num_workers=2 if args.fix else 1)
        harness.loop(harness.forever(lambda: loader), lambda batch: harness.burn(0.001), args.seconds)
