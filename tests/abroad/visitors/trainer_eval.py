"""The Trainer of transformers with a small BERT that is evaluated every 4 steps. --fix: every 200 steps."""
import os
import tempfile

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments

from pace import Pace, options


class Tickets(torch.utils.data.Dataset):
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.ids = torch.from_numpy(rng.integers(5, 1000, size=(count, 48)))
        self.labels = self.ids[:, 0] % 4

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return {"input_ids": self.ids[index], "attention_mask": torch.ones(48, dtype=torch.long), "labels": self.labels[index]}


class Counter(TrainerCallback):
    def __init__(self, seconds):
        self.pace = Pace(seconds)

    def on_step_end(self, args, state, control, **kwargs):
        if self.pace.done():
            control.should_training_stop = True
            control.should_evaluate = False
        return control


def accuracy(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def main():
    args = options()
    torch.set_num_threads(1)
    config = BertConfig(vocab_size=1000, hidden_size=48, num_hidden_layers=1, num_attention_heads=2, intermediate_size=96, num_labels=4)
    counter = Counter(args.seconds)
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model=BertForSequenceClassification(config),
            args=TrainingArguments(output_dir=folder, use_cpu=True, per_device_train_batch_size=16, per_device_eval_batch_size=64, max_steps=1 << 20,
                                   eval_strategy="steps", eval_steps=200 if args.fix else 4, save_strategy="no", logging_strategy="no",
                                   report_to="none", disable_tqdm=True),
            train_dataset=Tickets(20000, 0), eval_dataset=Tickets(320, 1), compute_metrics=accuracy, callbacks=[counter])
        trainer.train()
    counter.pace.show()


if __name__ == "__main__":
    main()
