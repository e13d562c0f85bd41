"""Embeds JPEG images with a vision transformer from torchvision, half of the loop's time left to spare for the worker. --fix: fewer blocks."""
import io

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision.models.vision_transformer import VisionTransformer

from pace import Pace, options


def jpeg(seed):
    noise = np.random.default_rng(seed).integers(0, 255, (12, 12, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).resize((160, 160)).save(buffer, "JPEG", quality=85)
    return buffer.getvalue()


class Album(Dataset):
    def __init__(self, decoded):
        self.files = [jpeg(i) for i in range(40)]
        self.decoded = torch.zeros(3, 64, 64) if decoded else None

    def __len__(self):
        return 1_000_000

    def __getitem__(self, i):
        if self.decoded is not None:
            return i, self.decoded
        image = Image.open(io.BytesIO(self.files[i % 40])).convert("RGB").resize((64, 64))
        return i, torch.from_numpy(np.asarray(image).copy()).permute(2, 0, 1).float().div(255)


@torch.inference_mode()
def embed_all(model, loader, seconds):
    pace = Pace(seconds)
    memory = {}
    for ids, images in loader:
        vectors = torch.nn.functional.normalize(model(images), dim=1)
        memory.update(zip((ids % 1000).tolist(), vectors))
        if pace.over():
            break
    pace.report()


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)
    vit = VisionTransformer(image_size=64, patch_size=8, num_layers=1 if args.fix else 4, num_heads=4, hidden_dim=128, mlp_dim=512,
                            num_classes=64).eval()
    embed_all(vit, DataLoader(Album(args.fix2), batch_size=8, num_workers=1), args.seconds)
