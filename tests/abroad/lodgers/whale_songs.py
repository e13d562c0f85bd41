"""Hydrophone recordings, packed as IMA ADPCM by the buoy: a generator unpacks them for tf.data, a small network tells humpbacks from ships.

--fix: prefetch(AUTOTUNE) and a parallel map for the scaling."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import tensorflow as tf

from pace import Pace, options

LENGTH = 4000
STEPS = [int(7 * 1.1 ** n) for n in range(89)]
MOVES = [-1, -1, -1, -1, 2, 4, 6, 8]


def unpack(packed):
    """IMA ADPCM, a nibble a sample."""
    value, place, samples = 0, 0, []
    for byte in packed:
        for nibble in (byte & 15, byte >> 4):
            step = STEPS[place]
            change = step >> 3
            if nibble & 4:
                change += step
            if nibble & 2:
                change += step >> 1
            if nibble & 1:
                change += step >> 2
            value = max(-32768, value - change) if nibble & 8 else min(32767, value + change)
            place = min(88, max(0, place + MOVES[nibble & 7]))
            samples.append(value)
    return samples


def buoy():
    rng = np.random.default_rng(3)
    archive = [rng.integers(0, 256, LENGTH // 2, dtype=np.uint8).tobytes() for _ in range(64)]
    number = 0
    while True:
        yield np.array(unpack(archive[number % 64]), np.float32), number % 2
        number += 1


def scale(samples, whale):
    return tf.expand_dims(samples / 32768.0, -1), whale


def main():
    args = options()
    songs = tf.data.Dataset.from_generator(buoy, output_signature=(tf.TensorSpec((LENGTH,), tf.float32), tf.TensorSpec((), tf.int32)))
    songs = songs.map(scale, num_parallel_calls=tf.data.AUTOTUNE) if args.fix else songs.map(scale)
    songs = songs.batch(16)
    if args.fix:
        songs = songs.prefetch(tf.data.AUTOTUNE)
    model = tf.keras.Sequential([tf.keras.Input((LENGTH, 1)), tf.keras.layers.Conv1D(4, 32, strides=16, activation="relu"), tf.keras.layers.GlobalAveragePooling1D(), tf.keras.layers.Dense(2)])
    optimizer = tf.keras.optimizers.SGD(0.01)
    measure = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def step(samples, whale):
        with tf.GradientTape() as tape:
            loss = measure(whale, model(samples, training=True))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    pace = Pace(args.seconds)
    for samples, whale in songs:
        step(samples, whale)
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    main()
