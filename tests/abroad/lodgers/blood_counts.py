"""JAX on a hospital's laboratory values: for each batch of patients the loop asks SQLite for their measurements, then steps.

--fix: CREATE INDEX on the patient's number."""
import os
import random
import sqlite3
import tempfile

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np

from pace import Pace, options

PATIENTS, ROWS, BATCH, KINDS = 4000, 160000, 16, 24


def fill(db):
    rng = np.random.default_rng(11)
    db.execute("CREATE TABLE labs (id INTEGER PRIMARY KEY, patient INTEGER, kind INTEGER, value REAL, remark TEXT)")
    rows = zip(rng.integers(0, PATIENTS, ROWS).tolist(), rng.integers(0, KINDS, ROWS).tolist(), rng.normal(size=ROWS).tolist())
    db.executemany("INSERT INTO labs (patient, kind, value, remark) VALUES (?, ?, ?, 'haemolytic, repeated')", rows)
    db.commit()


def batch_of(db, rng):
    x = np.zeros((BATCH, KINDS), np.float32)
    for i in range(BATCH):
        patient = rng.randrange(PATIENTS)
        for kind, value in db.execute("SELECT kind, AVG(value) FROM labs WHERE patient = ? GROUP BY kind", (patient,)):
            x[i, kind] = value
    return x, (x.sum(1) > 0).astype(np.float32)


def loss_of(params, x, y):
    hidden = jnp.tanh(x @ params["a"])
    logit = (hidden @ params["b"])[:, 0]
    return jnp.mean(jnp.logaddexp(0.0, logit) - y * logit)


@jax.jit
def step(params, x, y):
    loss, grads = jax.value_and_grad(loss_of)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), loss


args = options()
with tempfile.TemporaryDirectory() as folder:
    db = sqlite3.connect(os.path.join(folder, "labs.db"))
    fill(db)
    if args.fix:
        db.execute("CREATE INDEX by_patient ON labs (patient)")
    key = jax.random.PRNGKey(0)
    params = {"a": jax.random.normal(key, (KINDS, 256)) * 0.1, "b": jax.random.normal(key, (256, 1)) * 0.1}
    rng = random.Random(2)
    pace = Pace(args.seconds)
    while True:
        x, y = batch_of(db, rng)
        params, loss = step(params, x, y)
        float(loss)
        if pace.done():
            break
    pace.show()
    db.close()
