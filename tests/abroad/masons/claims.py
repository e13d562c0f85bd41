"""Fraud in motor insurance: claims as short token rows, a small BERT, trained with transformers' Trainer."""
import os
import shutil
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np
import pandas as pd
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments
from transformers.utils import logging

from pace import Pace, options

WORDS = 120000


def claims_table(count=4000):
    rng = np.random.default_rng(11)
    return pd.DataFrame({"region": rng.integers(0, 40, count), "age": rng.integers(18, 90, count), "sum": rng.lognormal(7, 1, count).round(2),
                         "words": [rng.integers(200, WORDS, 24) for _ in range(count)], "fraud": rng.integers(0, 2, count)})


class Claims(Dataset):
    def __init__(self, table):
        self.fields = table[["region", "age"]].to_numpy()
        self.words, self.fraud = np.stack(table["words"].to_list()), table["fraud"].to_numpy()

    def __len__(self):
        return len(self.fraud)

    def __getitem__(self, number):
        row = np.concatenate([self.fields[number] + 1, self.words[number]])
        return {"input_ids": torch.from_numpy(row), "labels": int(self.fraud[number])}


class Clock(TrainerCallback):
    def __init__(self, pace):
        self.pace = pace

    def on_step_end(self, args, state, control, **rest):
        if self.pace.done():
            control.should_training_stop = True
        return control


def main():
    asked = options()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="claims")
    try:
        model = BertForSequenceClassification(BertConfig(vocab_size=WORDS, hidden_size=96, num_hidden_layers=1, num_attention_heads=4,
                                                         intermediate_size=192, max_position_embeddings=64, num_labels=2))
        model.bert.embeddings.word_embeddings.requires_grad_(False)  # (word vectors that exist already)
        arguments = TrainingArguments(output_dir=os.path.join(folder, "runs"), per_device_train_batch_size=16, num_train_epochs=1000,
                                      save_strategy="steps", save_steps=400 if asked.fix else 2, save_total_limit=2,
                                      logging_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True, learning_rate=3e-4)
        pace = Pace(asked.seconds)
        Trainer(model=model, args=arguments, train_dataset=Claims(claims_table()), callbacks=[Clock(pace)]).train()
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
