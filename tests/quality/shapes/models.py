"""Three models as one finds them: a decoder, a vision transformer, a convolutional U-Net."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def rotation(dim, length, base=10000.0):
    steps = torch.arange(0, dim, 2).float()
    freqs = 1.0 / base ** (steps / dim)
    angles = torch.outer(torch.arange(length).float(), freqs)
    return angles.cos(), angles.sin()


def rotate(x, cos, sin):
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1)
    return turned.flatten(-2)


class RMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return x * scale * self.weight


class GroupedAttention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.n_heads = cfg["n_heads"]
        self.n_kv = cfg["n_kv"]
        self.head_dim = cfg["dim"] // cfg["n_heads"]
        self.wq = nn.Linear(cfg["dim"], self.n_heads * self.head_dim, bias=False)
        self.wkv = nn.Linear(cfg["dim"], 2 * self.n_kv * self.head_dim, bias=False)
        self.wo = nn.Linear(self.n_heads * self.head_dim, cfg["dim"], bias=False)

    def forward(self, x, cos, sin):
        bsz, seqlen, dim = x.shape
        q = self.wq(x).view(bsz, seqlen, self.n_heads, self.head_dim).transpose(1, 2)
        k, v = self.wkv(x).view(bsz, seqlen, 2, self.n_kv, self.head_dim).unbind(2)
        k, v = k.transpose(1, 2), v.transpose(1, 2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        repeat = self.n_heads // self.n_kv
        k = k.repeat_interleave(repeat, dim=1)
        v = v.repeat_interleave(repeat, dim=1)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)
        mask = torch.ones(seqlen, seqlen, dtype=torch.bool).tril()
        scores = scores.masked_fill(~mask, float("-inf"))
        weights = F.softmax(scores, dim=-1)
        out = (weights @ v).transpose(1, 2).reshape(bsz, seqlen, -1)
        return self.wo(out)


class FeedForward(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.gate = nn.Linear(dim, hidden)
        self.up = nn.Linear(dim, hidden)
        self.down = nn.Linear(hidden, dim)

    def forward(self, x):
        h = F.silu(self.gate(x)) * self.up(x)
        return self.down(h)


class DecoderBlock(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.norm1, self.norm2 = RMSNorm(cfg["dim"]), RMSNorm(cfg["dim"])
        self.attn = GroupedAttention(cfg)
        self.mlp = FeedForward(cfg["dim"], cfg["hidden"])

    def forward(self, x, cos, sin):
        x = x + self.attn(self.norm1(x), cos, sin)
        x = x + self.mlp(self.norm2(x))
        return x


class Decoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.vocab, self.dim = cfg["vocab"], cfg["dim"]
        self.embed = nn.Embedding(self.vocab, self.dim)
        self.blocks = nn.ModuleList(DecoderBlock(cfg) for _ in range(cfg["layers"]))
        self.norm = RMSNorm(self.dim)
        self.head = nn.Linear(self.dim, self.vocab)
        cos, sin = rotation(self.dim // cfg["n_heads"], cfg["length"])
        self.register_buffer("cos", cos)
        self.register_buffer("sin", sin)

    def forward(self, tokens, targets=None):
        B, T = tokens.shape
        h = self.embed(tokens)
        for block in self.blocks:
            h = block(h, self.cos[:T], self.sin[:T])
        h = self.norm(h)
        logits = self.head(h)
        if targets is None:
            return logits[:, -1]
        return F.cross_entropy(logits.view(B * T, -1), targets.view(B * T))

    @torch.no_grad()
    def generate(self, tokens, steps):
        for _ in range(steps):
            logits = self(tokens)
            nxt = logits.argmax(-1, keepdim=True)
            tokens = torch.cat([tokens, nxt], dim=1)
        return tokens


class VisionTransformer(nn.Module):
    def __init__(self, image, patch, dim, heads, classes):
        super().__init__()
        self.patch, self.heads = patch, heads
        self.count = (image // patch) ** 2
        self.project = nn.Linear(3 * patch * patch, dim)
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.position = nn.Parameter(torch.zeros(1, self.count + 1, dim))
        self.qkv = nn.Linear(dim, 3 * dim)
        self.head = nn.Linear(dim, classes)

    def patches(self, img):
        B, C, H, W = img.shape
        p = self.patch
        x = img.reshape(B, C, H // p, p, W // p, p)
        x = x.permute(0, 2, 4, 3, 5, 1)
        return x.reshape(B, (H // p) * (W // p), p * p * C)

    def forward(self, img):
        x = self.patches(img)
        x = self.project(x)
        B, N, D = x.shape
        cls = self.cls.expand(B, -1, -1)
        x = torch.cat([cls, x], dim=1) + self.position
        qkv = self.qkv(x).reshape(B, N + 1, 3, self.heads, D // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        attn = (q @ k.mT).softmax(-1)
        out = (attn @ v).transpose(1, 2).reshape(B, N + 1, D)
        return self.head(out[:, 0])


class UNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.enter = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.Conv2d(width, 2 * width, 4, stride=2, padding=1)
        self.mid = nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        self.up = nn.ConvTranspose2d(2 * width, width, 4, stride=2, padding=1)
        self.leave = nn.Conv2d(2 * width, 3, 1)
        self.time = nn.Linear(width, 2 * width)

    def embed(self, t):
        half = self.width // 2
        freqs = torch.exp(torch.arange(half) * -(math.log(10000) / half))
        args = t[:, None].float() * freqs[None]
        return torch.cat([args.cos(), args.sin()], dim=-1)

    def forward(self, img, t):
        B, C, H, W = img.shape
        emb = self.time(self.embed(t))
        a = F.silu(self.enter(img))
        b = F.silu(self.down(a))
        b = b + emb[:, :, None, None]
        b = F.silu(self.mid(b))
        c = self.up(b)
        c = torch.cat([c, a], dim=1)
        return self.leave(c)


def batches(data, size, length, seed):
    random = np.random.default_rng(seed)
    starts = random.integers(0, len(data) - length, (size,))
    rows = np.stack([data[s : s + length] for s in starts])
    shifted = np.stack([data[s + 1 : s + 1 + length] for s in starts])
    return torch.from_numpy(rows), torch.from_numpy(shifted)
