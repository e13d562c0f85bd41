"""A small English-German translation model: encoder, decoder, learning rate with a warm-up, custom loop."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

from pace import Pace, options

WORDS, LENGTH, BATCH, WIDTH = 800, 12, 32, 48


def phrases(count=4000):
    rng = np.random.default_rng(3)
    english = rng.integers(3, WORDS, size=(count, LENGTH))
    for row, length in zip(english, rng.integers(4, LENGTH + 1, size=count)):
        row[length:] = 0
    german = np.where(english > 0, (english * 7) % WORDS, 0)
    german[:, 0] = 1
    return english.astype(np.int32), german.astype(np.int32)


class Translator(tf.Module):
    def __init__(self):
        super().__init__()
        self.source = tf.keras.layers.Embedding(WORDS, WIDTH)
        self.target = tf.keras.layers.Embedding(WORDS, WIDTH)
        self.encoder = tf.keras.layers.GRU(WIDTH, return_state=True)
        self.decoder = tf.keras.layers.GRU(WIDTH, return_sequences=True)
        self.words = tf.keras.layers.Dense(WORDS)

    def __call__(self, english, german):
        _, state = self.encoder(self.source(english))
        return self.words(self.decoder(self.target(german), initial_state=state))

    def weights(self):
        layers = (self.source, self.target, self.encoder, self.decoder, self.words)
        return [weight.value for layer in layers for weight in layer.trainable_weights]


def warmup(step, peak=0.5, steps=400):
    return peak * min((step + 1) / steps, (steps / (step + 1)) ** 0.5)


def main():
    args = options()
    english, german = phrases()
    data = tf.data.Dataset.from_tensor_slices((english, german)).shuffle(4000).repeat()
    data = data.batch(BATCH, drop_remainder=True).prefetch(2)
    translator = Translator()
    translator(english[:2], german[:2])
    weights = translator.weights()

    @tf.function
    def train_step(english, german, rate):
        with tf.GradientTape() as tape:
            logits = translator(english, german[:, :-1])
            goal = german[:, 1:]
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(goal, logits)
            mask = tf.cast(goal > 0, tf.float32)
            loss = tf.reduce_sum(losses * mask) / tf.reduce_sum(mask)
        for weight, grad in zip(weights, tape.gradient(loss, weights)):
            if isinstance(grad, tf.IndexedSlices):
                grad = tf.convert_to_tensor(grad)
            weight.assign_sub(rate * grad)
        return loss

    pace = Pace(args.seconds)
    for step, (source, target) in enumerate(data):
        rate = warmup(step)
        if args.fix:
            rate = tf.constant(rate, tf.float32)
        loss = train_step(source, target, rate)
        if pace.done():
            break
    print(f"step {step} loss {float(loss):.3f}")
    pace.show()


if __name__ == "__main__":
    main()
