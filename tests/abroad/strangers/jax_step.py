"""A jax training loop fed by a thread; the update is plain jax code."""
import queue
import threading

import jax
import jax.numpy as jnp
import numpy as np

from pace import Pace, options


def feed(q, light):
    rng = np.random.default_rng(7)
    x = rng.normal(size=(128, 30)).astype(np.float32)
    while True:
        if not light:
            x = rng.normal(size=(128, 30)).astype(np.float32)
        q.put((x, x[:, :1] * 2))


def predict(params, x):
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def loss(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)


def update(params, x, y):
    grads = jax.grad(loss)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads)


def main():
    args = options()
    keys = jax.random.split(jax.random.PRNGKey(0), 4)
    sizes = [30, 64, 64, 64, 1]
    params = [(jax.random.normal(k, (a, b)) / np.sqrt(a), jnp.zeros(b)) for k, a, b in zip(keys, sizes, sizes[1:])]
    step = jax.jit(update) if args.fix else update
    q = queue.Queue(maxsize=8)
    threading.Thread(target=feed, args=(q, args.fix2), daemon=True).start()
    pace = Pace(args.seconds)
    while not pace.tick():
        params = step(params, *q.get())
        jax.block_until_ready(params)
    pace.show()


if __name__ == "__main__":
    main()
