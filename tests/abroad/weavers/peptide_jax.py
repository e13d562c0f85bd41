"""Retention times of peptides: sequences of many lengths, a small convolutional net in JAX with optax."""
import pathlib
import shutil
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import optax

from pace import Pace, options

AMINO = "ACDEFGHIKLMNPQRSTVWY"
WIDTH, BATCH, BUCKET = 24, 16, 512


def write_fasta(path, count=3000):
    rng = np.random.default_rng(7)
    with open(path, "w") as out:
        for number in range(count):
            length = int(rng.integers(40, 1500))
            residues = "".join(AMINO[k] for k in rng.integers(0, 20, length))
            out.write(f">{number}|{length * 0.01 + rng.normal():.3f}\n{residues}\n")


def read_fasta(path):
    table = np.zeros(128, np.int32)
    for code, letter in enumerate(AMINO, 1):
        table[ord(letter)] = code
    peptides, times = [], []
    with open(path) as lines:
        for line in lines:
            if line.startswith(">"):
                times.append(float(line.rsplit("|", 1)[1]))
            else:
                peptides.append(table[np.frombuffer(line.strip().encode(), np.uint8)])
    return peptides, np.asarray(times, np.float32)


def pad_batch(peptides, bucket):
    longest = max(len(peptide) for peptide in peptides)
    if bucket:
        longest = -(-longest // bucket) * bucket
    padded = np.zeros((len(peptides), longest), np.int32)
    for row, peptide in enumerate(peptides):
        padded[row, :len(peptide)] = peptide
    return padded


def init(key):
    first, second, third = jax.random.split(key, 3)
    return {"embed": jax.random.normal(first, (21, WIDTH)) * 0.1,
            "conv": jax.random.normal(second, (5, WIDTH, WIDTH)) * 0.1,
            "out": jax.random.normal(third, (WIDTH,)) * 0.1}


def predict(params, codes):
    hidden = params["embed"][codes]
    hidden = jax.lax.conv_general_dilated(hidden, params["conv"], (2,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))
    return jnp.mean(jax.nn.relu(hidden), axis=1) @ params["out"]


def main():
    args = options()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="peptide"))
    try:
        write_fasta(folder / "train.fasta")
        peptides, times = read_fasta(folder / "train.fasta")
        params = init(jax.random.key(0))
        optimizer = optax.adam(1e-3)
        state = optimizer.init(params)

        @jax.jit
        def train_step(params, state, codes, target):
            loss, grads = jax.value_and_grad(lambda p: jnp.mean((predict(p, codes) - target) ** 2))(params)
            updates, state = optimizer.update(grads, state)
            return optax.apply_updates(params, updates), state, loss

        # batches of about equal length, so that little is padding
        by_length = np.argsort([len(peptide) for peptide in peptides])
        groups = [by_length[at:at + BATCH] for at in range(0, len(by_length), BATCH)]
        rng = np.random.default_rng(0)
        pace, over = Pace(args.seconds), False
        while not over:
            for group in rng.permutation(len(groups)):
                rows = groups[group]
                codes = pad_batch([peptides[row] for row in rows], BUCKET if args.fix else None)
                params, state, loss = train_step(params, state, codes, times[rows])
                loss.block_until_ready()
                over = pace.done()
                if over:
                    break
        pace.show()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
