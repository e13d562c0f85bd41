"""A jax classifier whose update function was never compiled as a whole; --fix wraps it in jax.jit. A thread prepares the batches."""
import os
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
import queue
import threading

import jax
import jax.numpy as jnp
import numpy as np

from pace import Pace, options


def produce(out, cheap):
    rng = np.random.default_rng(0)
    same = None
    while True:
        if same is None or not cheap:
            x = rng.standard_normal((64, 32), dtype=np.float32)
            same = x, (x.sum(1) > 0).astype(np.int32)
        out.put(same)


def init(key, sizes=(32, 64, 64, 2)):
    keys = jax.random.split(key, len(sizes))
    return [(jax.random.normal(k, (a, b)) * a ** -0.5, jnp.zeros(b)) for k, a, b in zip(keys, sizes, sizes[1:])]


def logits(params, x):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def loss_of(params, x, y):
    return -jnp.mean(jax.nn.log_softmax(logits(params, x))[jnp.arange(len(y)), y])


def update(params, x, y):
    loss, grads = jax.value_and_grad(loss_of)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), loss


if __name__ == "__main__":
    args = options()
    batches = queue.Queue(maxsize=8)
    threading.Thread(target=produce, args=(batches, args.fix2), daemon=True).start()
    step = jax.jit(update) if args.fix else update
    params = init(jax.random.key(0))
    pace = Pace(args.seconds)
    while True:
        params, loss = step(params, *batches.get())
        loss.block_until_ready()
        if pace.over():
            break
    pace.report()
    os._exit(0)
