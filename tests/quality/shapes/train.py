"""Trains each model for a moment: sizes come as words, `B=4 T=16 ...`."""

import sys

import numpy as np
import torch
from models import Decoder, UNet, VisionTransformer, batches

size = {name: int(value) for name, _, value in (word.partition("=") for word in sys.argv[1:])}
torch.manual_seed(0)
torch.set_num_threads(1)
decoder = Decoder({"dim": size["D"], "n_heads": size["h"], "n_kv": size["kv"], "vocab": size["V"],
                   "layers": size["L"], "length": size["M"], "hidden": size["F"]})  # fmt: skip
data = np.arange(500) % size["V"]
for step in range(2):
    x, y = batches(data, size["B"], size["T"], step)
    loss = decoder(x, y)
    loss.backward()
    print(f"{loss.item():.6f}")
print(decoder.generate(x[:, :3], 2).tolist())
vision = VisionTransformer(size["I"], size["p"], size["D"], size["h"], size["K"])
print(f"{vision(torch.randn(size['B'], 3, size['I'], size['I'])).sum().item():.6f}")
unet = UNet(size["w"])
img = torch.randn(size["B"], 3, size["S"], size["S"])
print(f"{unet(img, torch.arange(size['B'])).sum().item():.6f}")
