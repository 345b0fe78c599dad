"""The models of this folder in Keras, with which tests and benchmarks compare them.

Their options are the configurations' (DenseNetConfig and so on), with the same defaults, but for dropout.
"""

import tensorflow as tf

keras = tf.keras
L = keras.layers


class PositionEmbedding(L.Layer):
    def __init__(self, length):
        super().__init__()
        self.length = length

    def build(self, input_shape):
        self.embeddings = self.add_weight("embeddings", (self.length, input_shape[-1]))

    def call(self, x):
        return tf.broadcast_to(self.embeddings[:tf.shape(x)[1]], tf.shape(x))

    def compute_mask(self, inputs, mask=None):
        return None


class AtPlaces(L.Layer):
    def call(self, inputs):
        x, places = inputs
        return tf.gather(x, places, batch_dims=1)

    def compute_mask(self, inputs, mask=None):
        return None


def densenet(size=16, blocks=(2, 2, 2), growth=16, classes=8):
    def normalize(x):
        return L.ReLU()(L.BatchNormalization()(x))

    def convolve(x, filters, size):
        return L.Conv2D(filters, size, padding="same", use_bias=False)(x)

    images = keras.Input((size, size, 3), name="images")
    x = convolve(images, 2 * growth, 3)
    for block, count in enumerate(blocks):
        if block > 0:
            x = L.AveragePooling2D()(convolve(normalize(x), x.shape[-1] // 2, 1))
        for _ in range(count):
            more = convolve(normalize(convolve(normalize(x), 4 * growth, 1)), growth, 3)
            x = L.Concatenate()([x, more])
    return keras.Model(images, L.Dense(classes)(L.GlobalAveragePooling2D()(normalize(x))))


def ncf(users=200, items=300, factors=8, tower=(32, 16, 8)):
    user, item = (keras.Input((), name=name, dtype="int64") for name in ("users", "items"))
    product = L.Multiply()([L.Embedding(users, factors)(user), L.Embedding(items, factors)(item)])
    x = L.Concatenate()([L.Embedding(users, tower[0] // 2)(user),
                         L.Embedding(items, tower[0] // 2)(item)])
    for units in tower:
        x = L.Dense(units, activation="relu")(x)
    return keras.Model({"users": user, "items": item}, L.Dense(1)(L.Concatenate()([product, x])))


def embed(vocabulary, length, features, padded, ids):
    tokens = L.Embedding(vocabulary, features, mask_zero=padded)(ids)
    return L.Add()([tokens, PositionEmbedding(length)(tokens)])


class Blocks:
    def __init__(self, heads, inner, activation, dropout, epsilon):
        self.heads, self.inner, self.activation = heads, inner, activation
        self.dropout, self.epsilon = dropout, epsilon

    def normalize(self, x):
        return L.LayerNormalization(epsilon=self.epsilon)(x)

    def normalize_and_drop(self, x):
        return L.Dropout(self.dropout)(self.normalize(x))

    def add_and_normalize(self, x, part):
        return self.normalize(L.Add()([x, L.Dropout(self.dropout)(part)]))

    def attend(self, queries, values, causal=False):
        attention = L.MultiHeadAttention(self.heads, queries.shape[-1] // self.heads,
                                         dropout=self.dropout)
        return self.add_and_normalize(queries, attention(queries, values, use_causal_mask=causal))

    def feed_forward(self, x):
        inner = L.Dense(self.inner, activation=self.activation)(x)
        return self.add_and_normalize(x, L.Dense(x.shape[-1])(inner))

    def encoder(self, x):
        return self.feed_forward(self.attend(x, x))

    def decoder(self, x, encoded):
        return self.feed_forward(self.attend(self.attend(x, x, causal=True), encoded))


def bert(words=96, length=24, features=64, layers=2, heads=4, inner=128, masked=3, dropout=0.0):
    blocks = Blocks(heads, inner, "gelu", dropout, 1e-12)
    vocabulary = words + 4
    inputs = {name: keras.Input((size,), name=name, dtype="int64")
              for name, size in (("tokens", length), ("segments", length), ("places", masked))}
    embedded = embed(vocabulary, length, features, True, inputs["tokens"])
    x = blocks.normalize_and_drop(L.Add()([embedded, L.Embedding(2, features)(inputs["segments"])]))
    for _ in range(layers):
        x = blocks.encoder(x)
    hidden = L.Dense(features, activation="gelu")(AtPlaces()([x, inputs["places"]]))
    return keras.Model(inputs, L.Dense(vocabulary)(blocks.normalize(hidden)))


def sentences(longest):
    return (keras.Input((longest,), name="source", dtype="int64"),
            keras.Input((longest + 1,), name="target", dtype="int64"))


def nmt(words=40, longest=9, features=48, units=64, dropout=0.0):
    vocabulary = words + 3
    source, target = sentences(longest)
    embedded = L.Embedding(vocabulary, features, mask_zero=True)(source)
    encoded = L.Bidirectional(L.GRU(units, return_sequences=True), merge_mode="sum")(embedded)
    state = L.GRU(units, return_sequences=True)(L.Embedding(vocabulary, features)(target))
    attended = L.MultiHeadAttention(1, units, dropout=dropout)(state, encoded)
    return keras.Model({"source": source, "target": target},
                       L.Dense(vocabulary)(L.LayerNormalization()(L.Add()([state, attended]))))


def transformer(words=40, longest=9, features=64, layers=1, heads=4, inner=128, dropout=0.0):
    blocks = Blocks(heads, inner, "relu", dropout, 1e-6)
    vocabulary = words + 3
    source, target = sentences(longest)
    encoded = blocks.normalize_and_drop(embed(vocabulary, longest, features, True, source))
    for _ in range(layers):
        encoded = blocks.encoder(encoded)
    x = blocks.normalize_and_drop(embed(vocabulary, longest + 1, features, False, target))
    for _ in range(layers):
        x = blocks.decoder(x, encoded)
    return keras.Model({"source": source, "target": target}, L.Dense(vocabulary)(x))
