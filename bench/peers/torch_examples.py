"""The models of examples/models in PyTorch, in the sizes of bench/example_training.cc."""

import torch
from torch import nn
from torch.nn import functional as F

from samples import CLASSES, COLUMNS, LABEL_IDS

DROPOUT = 0.1


def padded_cross_entropy(logits, labels):
    """The mean over all labels, of which padding, 0, counts nothing."""
    total = F.cross_entropy(logits.flatten(0, -2), labels.flatten(), ignore_index=0, reduction="sum")
    return total / labels.numel()


def binary_cross_entropy(logits, labels):
    return F.binary_cross_entropy_with_logits(logits, labels.float())


def split(name, inputs):
    return inputs.split([column.count for column in COLUMNS[name]], 1)


# DenseNet


class Normalized(nn.Sequential):
    """Keras's epsilon and momentum."""

    def __init__(self, channels):
        super().__init__(nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01), nn.ReLU(inplace=True))


def convolution(inputs, outputs, size):
    return nn.Conv2d(inputs, outputs, size, padding=size // 2, bias=False)


class DenseLayer(nn.Module):
    def __init__(self, channels, growth):
        super().__init__()
        self.more = nn.Sequential(Normalized(channels), convolution(channels, 4 * growth, 1),
                                  Normalized(4 * growth), convolution(4 * growth, growth, 3))

    def forward(self, x):
        return torch.cat([x, self.more(x)], 1)


class DenseNet(nn.Sequential):
    def __init__(self, blocks=(6, 6, 6), growth=16):
        channels = 2 * growth
        parts = [convolution(3, channels, 3)]
        for block, count in enumerate(blocks):
            if block > 0:
                parts += [Normalized(channels), convolution(channels, channels // 2, 1), nn.AvgPool2d(2)]
                channels //= 2
            for _ in range(count):
                parts.append(DenseLayer(channels, growth))
                channels += growth
        super().__init__(*parts, Normalized(channels), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(channels, CLASSES))


# Neural collaborative filtering


class Ncf(nn.Module):
    def __init__(self, factors=16, tower=(64, 32, 16)):
        super().__init__()
        users, items = (column.ids for column in COLUMNS["ncf"])
        self.tables = nn.ModuleList([
            nn.Embedding(users, factors), nn.Embedding(items, factors),
            nn.Embedding(users, tower[0] // 2), nn.Embedding(items, tower[0] // 2)])
        for table in self.tables:
            nn.init.uniform_(table.weight, -0.05, 0.05)
        layers, width = [], tower[0]
        for units in tower:
            layers += [nn.Linear(width, units), nn.ReLU(inplace=True)]
            width = units
        self.tower = nn.Sequential(*layers)
        self.output = nn.Linear(factors + width, 1)

    def forward(self, inputs):
        users, items = inputs.unbind(1)
        user, item, tower_user, tower_item = (
            table(ids) for table, ids in zip(self.tables, (users, items, users, items)))
        tower = self.tower(torch.cat([tower_user, tower_item], 1))
        return self.output(torch.cat([user * item, tower], 1))


# Attention


class Attention(nn.Module):
    """Queries, keys and values of self-attention are one product."""

    def __init__(self, features, heads, own):
        super().__init__()
        self.heads, self.own = heads, own
        if own:
            self.all = nn.Linear(features, 3 * features)
        else:
            self.query, self.both = nn.Linear(features, features), nn.Linear(features, 2 * features)
        self.output = nn.Linear(features, features)

    def forward(self, x, values=None, mask=None, causal=False):
        if self.own:
            parts = self.all(x).chunk(3, -1)
        else:
            parts = (self.query(x), *self.both(values).chunk(2, -1))
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        attended = F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=causal,
            dropout_p=DROPOUT if self.training else 0.0)
        return self.output(attended.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """Of the encoder, or with a second attention of the decoder."""

    def __init__(self, features, heads, inner, activation, epsilon, crossed=False):
        super().__init__()
        self.causal = crossed
        self.attention = Attention(features, heads, own=True)
        self.crossed = Attention(features, heads, own=False) if crossed else None
        self.inner = nn.Sequential(nn.Linear(features, inner), activation, nn.Linear(inner, features))
        self.norms = nn.ModuleList([nn.LayerNorm(features, eps=epsilon) for _ in range(3 if crossed else 2)])
        self.drop = nn.Dropout(DROPOUT)

    def forward(self, x, mask=None, encoded=None):
        own_mask = None if self.causal else mask
        x = self.norms[0](x + self.drop(self.attention(x, mask=own_mask, causal=self.causal)))
        if self.crossed is not None:
            x = self.norms[1](x + self.drop(self.crossed(x, encoded, mask=mask)))
        return self.norms[-1](x + self.drop(self.inner(x)))


class Embedded(nn.Module):
    def __init__(self, vocabulary, length, features, epsilon, segments=0):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, features)
        self.places = nn.Parameter(torch.empty(length, features))
        self.segments = nn.Embedding(segments, features) if segments else None
        for table in filter(None, (self.tokens, self.segments)):
            nn.init.uniform_(table.weight, -0.05, 0.05)
        nn.init.uniform_(self.places, -0.05, 0.05)
        self.norm = nn.LayerNorm(features, eps=epsilon)
        self.drop = nn.Dropout(DROPOUT)

    def forward(self, ids, segments=None):
        x = self.tokens(ids) + self.places
        if segments is not None:
            x = x + self.segments(segments)
        return self.drop(self.norm(x))


def mask_of(ids):
    """[batch, 1, 1, steps]: to which of them others attend."""
    return (ids != 0)[:, None, None]


class Bert(nn.Module):
    def __init__(self, features=128, layers=2, heads=2, inner=512):
        super().__init__()
        epsilon = 1e-12
        tokens, _, _ = COLUMNS["bert"]
        self.embedded = Embedded(tokens.ids, tokens.count, features, epsilon, segments=2)
        self.blocks = nn.ModuleList([Block(features, heads, inner, nn.GELU(), epsilon)
                                     for _ in range(layers)])
        self.head = nn.Sequential(nn.Linear(features, features), nn.GELU(),
                                  nn.LayerNorm(features, eps=epsilon), nn.Linear(features, tokens.ids))

    def forward(self, inputs):
        tokens, segments, places = split("bert", inputs)
        x, mask = self.embedded(tokens, segments), mask_of(tokens)
        for block in self.blocks:
            x = block(x, mask)
        chosen = x.gather(1, places[..., None].expand(-1, -1, x.size(2)))
        return self.head(chosen)


class Nmt(nn.Module):
    def __init__(self, features=128, units=128):
        super().__init__()
        source, target = COLUMNS["nmt"]
        self.source, self.target = nn.Embedding(source.ids, features), nn.Embedding(target.ids, features)
        for table in (self.source, self.target):
            nn.init.uniform_(table.weight, -0.05, 0.05)
        self.encoder = nn.GRU(features, units, batch_first=True, bidirectional=True)
        self.decoder = nn.GRU(features, units, batch_first=True)
        self.attention = Attention(units, 1, own=False)
        self.norm = nn.LayerNorm(units, eps=1e-3)
        self.output = nn.Linear(units, LABEL_IDS["nmt"])

    def forward(self, inputs):
        source, target = split("nmt", inputs)
        lengths = (source != 0).sum(1)
        packed = nn.utils.rnn.pack_padded_sequence(self.source(source), lengths, batch_first=True,
                                                   enforce_sorted=False)
        both, _ = nn.utils.rnn.pad_packed_sequence(self.encoder(packed)[0], batch_first=True,
                                                   total_length=source.size(1))
        encoded = sum(both.chunk(2, -1))
        state, _ = self.decoder(self.target(target))
        return self.output(self.norm(state + self.attention(state, encoded, mask=mask_of(source))))


class Transformer(nn.Module):
    def __init__(self, features=128, layers=2, heads=4, inner=512):
        super().__init__()
        epsilon = 1e-6
        source, target = COLUMNS["transformer"]
        self.source = Embedded(source.ids, source.count, features, epsilon)
        self.target = Embedded(target.ids, target.count, features, epsilon)

        def blocks(crossed):
            return nn.ModuleList([Block(features, heads, inner, nn.ReLU(), epsilon, crossed)
                                  for _ in range(layers)])

        self.encoder, self.decoder = blocks(False), blocks(True)
        self.output = nn.Linear(features, LABEL_IDS["transformer"])

    def forward(self, inputs):
        source, target = split("transformer", inputs)
        encoded, mask = self.source(source), mask_of(source)
        for block in self.encoder:
            encoded = block(encoded, mask)
        x = self.target(target)
        for block in self.decoder:
            x = block(x, mask, encoded)
        return self.output(x)


MODELS = {"densenet": DenseNet, "bert": Bert, "ncf": Ncf, "nmt": Nmt, "transformer": Transformer}
LOSSES = {"bert": padded_cross_entropy, "ncf": binary_cross_entropy, "nmt": padded_cross_entropy,
          "transformer": padded_cross_entropy}
