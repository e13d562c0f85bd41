"""Routes helpdesk tickets to a team: fine-tuning with the Hugging Face Trainer."""
import os
import shutil
import tempfile

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch
from torch.utils.data import Dataset
from transformers import (BertConfig, BertForSequenceClassification, Trainer, TrainerCallback,
                          TrainingArguments)

from pace import Pace, options

TEAMS = 5
VOCABULARY = 16_000


class Tickets(Dataset):
    """Tickets, already turned into ids."""

    def __init__(self, count=4000, length=24):
        generator = torch.Generator().manual_seed(5)
        self.ids = torch.randint(5, VOCABULARY, (count, length), generator=generator)
        self.team = self.ids[:, 0] % TEAMS

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return {"input_ids": self.ids[index], "labels": self.team[index],
                "attention_mask": torch.ones_like(self.ids[index])}


class Clock(TrainerCallback):
    def __init__(self, pace):
        self.pace = pace

    def on_step_end(self, args, state, control, **kwargs):
        if self.pace.done():
            control.should_training_stop = True
        return control


def small_bert():
    return BertForSequenceClassification(BertConfig(
        vocab_size=VOCABULARY, hidden_size=256, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=512, max_position_embeddings=64, num_labels=TEAMS))


def main():
    options_ = options()
    output = tempfile.mkdtemp(prefix="helpdesk_")
    try:
        arguments = TrainingArguments(
            output_dir=output,
            per_device_train_batch_size=8,
            learning_rate=5e-5,
            max_steps=100_000,
            logging_steps=50,
            save_strategy="steps",
            save_steps=500 if options_.fix else 1,   # spot machines: lose nothing
            save_total_limit=1,
            report_to="none",
            use_cpu=True,
            disable_tqdm=True)
        pace = Pace(options_.seconds)
        trainer = Trainer(model=small_bert(), args=arguments, train_dataset=Tickets(),
                          callbacks=[Clock(pace)])
        trainer.train()
        pace.show()
    finally:
        shutil.rmtree(output, ignore_errors=True)


if __name__ == "__main__":
    main()
