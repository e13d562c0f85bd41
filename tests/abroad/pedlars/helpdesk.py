"""Routes help-desk tickets to a team: a small text model in JAX, padded to the longest of each batch."""
import json
import os
import shutil
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import optax

from pace import Pace, options

WORDS, TEAMS, WIDTH, BATCH = 3000, 7, 48, 16


def write_tickets(path, count=2500):
    rng = np.random.default_rng(8)
    with open(path, "w") as f:
        for _ in range(count):
            length = int(np.clip(rng.lognormal(4.0, 0.8), 5, 640))
            team = int(rng.integers(TEAMS))
            ids = (rng.zipf(1.4, length) + 17 * team) % (WORDS - 1) + 1
            f.write(json.dumps({"ids": ids.tolist(), "team": team}) + "\n")


def read_tickets(path):
    with open(path) as f:
        return [json.loads(line) for line in f]


def padded_length(longest, fix):
    return -(-longest // 320) * 320 if fix else longest


def batches(tickets, fix):
    rng = np.random.default_rng(0)
    while True:
        picked = [tickets[i] for i in rng.integers(0, len(tickets), BATCH)]
        width = padded_length(max(len(t["ids"]) for t in picked), fix)
        ids = np.zeros((BATCH, width), "int32")
        for row, ticket in zip(ids, picked):
            row[:len(ticket["ids"])] = ticket["ids"]
        yield ids, np.array([t["team"] for t in picked])


def init(key):
    a, b, c, d = jax.random.split(key, 4)
    return {"emb": jax.random.normal(a, (WORDS, WIDTH)) * 0.1,
            "conv": jax.random.normal(b, (3, WIDTH, WIDTH)) * 0.1,
            "gate": jax.random.normal(c, (WIDTH, WIDTH)) * 0.1,
            "out": jax.random.normal(d, (WIDTH, TEAMS)) * 0.1}


def logits(p, ids):
    mask = (ids > 0)[..., None]
    x = p["emb"][ids] * mask
    x = jax.nn.relu(jax.lax.conv_general_dilated(x, p["conv"], (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")))
    score = jnp.where(mask, x @ p["gate"], -1e9)
    return (jax.nn.softmax(score, axis=1) * x).sum(1) @ p["out"]


def main():
    opts = options()
    folder = tempfile.mkdtemp(prefix="helpdesk")
    try:
        write_tickets(os.path.join(folder, "tickets.jsonl"))
        tickets = read_tickets(os.path.join(folder, "tickets.jsonl"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    tx = optax.adamw(1e-3)
    params = init(jax.random.key(0))
    state = tx.init(params)

    @jax.jit
    def update(params, state, ids, team):
        def loss_of(p):
            return optax.softmax_cross_entropy_with_integer_labels(logits(p, ids), team).mean()
        loss, grads = jax.value_and_grad(loss_of)(params)
        change, state = tx.update(grads, state, params)
        return optax.apply_updates(params, change), state, loss

    pace = Pace(opts.seconds)
    for ids, team in batches(tickets, opts.fix):
        params, state, loss = update(params, state, ids, team)
        loss.block_until_ready()
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    main()
