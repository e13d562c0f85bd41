"""JAX with a prefetch thread of its own. Sentences are padded to the longest of their batch, so the jitted update gets new shapes and is compiled anew.
--fix: pads to multiples of 128."""
import queue
import threading

import jax
import jax.numpy as jnp
import numpy as np
import optax

from pace import Pace, options

VOCAB, WIDTH, CLASSES = 500, 32, 8


def sentences(seed, multiple):
    rng = np.random.default_rng(seed)
    while True:
        lengths = rng.integers(20, 480, size=8)
        longest = int(lengths.max() if multiple == 1 else -(-lengths.max() // multiple) * multiple)
        tokens = np.zeros((8, longest), np.int32)
        for row, n in enumerate(lengths):
            tokens[row, :n] = rng.integers(1, VOCAB, size=n)
        yield tokens, rng.integers(0, CLASSES, size=8)


def prefetch(iterator, depth=4):
    ready = queue.Queue(depth)

    def fill():
        for item in iterator:
            ready.put(jax.device_put(item))

    threading.Thread(target=fill, name="prefetch", daemon=True).start()
    while True:
        yield ready.get()


def init(key):
    a, b, c = jax.random.split(key, 3)
    return {"embed": jax.random.normal(a, (VOCAB, WIDTH)) * 0.1, "mix": jax.random.normal(b, (WIDTH, WIDTH)) * 0.1,
            "out": jax.random.normal(c, (WIDTH, CLASSES)) * 0.1}


def loss_fn(params, tokens, labels):
    mask = (tokens > 0)[..., None]
    x = params["embed"][tokens] * mask
    x = jax.nn.gelu(x @ params["mix"]) * mask
    pooled = x.sum(1) / mask.sum(1)
    return optax.softmax_cross_entropy_with_integer_labels(pooled @ params["out"], labels).mean()


tx = optax.adam(1e-3)


@jax.jit
def update(params, state, tokens, labels):
    loss, grads = jax.value_and_grad(loss_fn)(params, tokens, labels)
    updates, state = tx.update(grads, state)
    return optax.apply_updates(params, updates), state, loss


def main():
    args = options()
    params = init(jax.random.PRNGKey(0))
    state = tx.init(params)
    pace = Pace(args.seconds)
    for tokens, labels in prefetch(sentences(0, 128 if args.fix else 1)):
        params, state, loss = update(params, state, jnp.asarray(tokens), jnp.asarray(labels))
        loss.block_until_ready()
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    main()
