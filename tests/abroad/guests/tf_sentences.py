"""tf.data from a Python generator of sentences, one element at a time, batched and trained by a loop of its own. --fix: the generator yields batches."""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

from pace import Pace, options

VOCAB, LENGTH, BATCH = 2000, 32, 128


def sentences():
    rng = np.random.default_rng(0)
    stock = rng.integers(1, VOCAB, size=(4096, LENGTH)).astype(np.int32)
    classes = (stock[:, 0] % 2).astype(np.int32)
    return stock, classes


def one_by_one(stock, classes):
    at = 0
    while True:
        yield stock[at], classes[at]
        at = (at + 1) % len(stock)


def by_batches(stock, classes):
    at = 0
    while True:
        yield stock[at:at + BATCH], classes[at:at + BATCH]
        at = (at + BATCH) % len(stock)


def main():
    args = options()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    stock, classes = sentences()
    if args.fix:
        data = tf.data.Dataset.from_generator(lambda: by_batches(stock, classes), output_signature=(
            tf.TensorSpec((BATCH, LENGTH), tf.int32), tf.TensorSpec((BATCH,), tf.int32)))
    else:
        data = tf.data.Dataset.from_generator(lambda: one_by_one(stock, classes), output_signature=(
            tf.TensorSpec((LENGTH,), tf.int32), tf.TensorSpec((), tf.int32))).batch(BATCH)
    embed = tf.Variable(tf.random.normal((VOCAB, 16), stddev=0.1))
    out = tf.Variable(tf.random.normal((16, 2), stddev=0.1))

    @tf.function
    def step(tokens, wanted):
        with tf.GradientTape() as tape:
            scores = tf.reduce_mean(tf.gather(embed, tokens), 1) @ out
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(wanted, scores))
        by_embed, by_out = tape.gradient(loss, [embed, out])
        embed.scatter_sub(tf.IndexedSlices(0.1 * by_embed.values, by_embed.indices))
        out.assign_sub(0.1 * by_out)
        return loss

    pace = Pace(args.seconds)
    for tokens, wanted in data.prefetch(4):
        step(tokens, wanted)
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    main()
