"""Star ratings from shop reviews: a tiny BERT trained with the Hugging Face Trainer."""
import os
import random
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch
from datasets import Dataset
from datasets.utils.logging import disable_progress_bar
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments

from pace import Pace, options

VOCAB = 8_000
LENGTH = 32


def make_reviews(count, seed):
    rng = random.Random(seed)
    rows = {"input_ids": [], "attention_mask": [], "labels": []}
    for _ in range(count):
        rows["input_ids"].append([101] + [rng.randrange(1000, VOCAB) for _ in range(LENGTH - 2)] + [102])
        rows["attention_mask"].append([1] * LENGTH)
        rows["labels"].append(rng.randrange(5))
    return Dataset.from_dict(rows).with_format("torch")


class StopInTime(TrainerCallback):
    def __init__(self, pace):
        self.pace = pace

    def on_step_end(self, args, state, control, **kwargs):
        if self.pace.done():
            control.should_training_stop = True
            control.should_evaluate = False
        return control


def main():
    opts = options()
    torch.set_num_threads(1)
    disable_progress_bar()
    reviews, held_out = make_reviews(4000, seed=11), make_reviews(2400, seed=12)
    config = BertConfig(vocab_size=VOCAB, hidden_size=128, num_hidden_layers=2, num_attention_heads=2,
                        intermediate_size=256, max_position_embeddings=64, num_labels=5)
    model = BertForSequenceClassification(config)
    pace = Pace(opts.seconds)
    with tempfile.TemporaryDirectory(prefix="reviews-") as output:
        training = TrainingArguments(
            output_dir=output,
            per_device_train_batch_size=8,
            num_train_epochs=1000,
            learning_rate=3e-4,
            logging_steps=100,
            eval_strategy="steps",
            eval_steps=500 if opts.fix else 10,
            per_device_eval_batch_size=16,
            save_strategy="no",
            dataloader_num_workers=0,
            use_cpu=True,
            report_to=[],
            disable_tqdm=True,
        )
        trainer = Trainer(model=model, args=training, train_dataset=reviews, eval_dataset=held_out,
                          callbacks=[StopInTime(pace)])
        trainer.train()
    pace.show()


if __name__ == "__main__":
    main()
