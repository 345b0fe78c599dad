// A layer of vectors that are learned, one for each position of a sequence.
#pragma once

#include <cohort/cohort.h>

#include <cstdint>

namespace models {

// Shapes: [batch, steps, features] -> the same: the vectors of the first `steps` positions, for each
// row of the batch. Weight: "embeddings" [length, features].
// Errors (call): InvalidArgument (more steps than `length`).
cohort::keras::layers::LayerHandle position_embedding(int64_t length);

}  // namespace models
