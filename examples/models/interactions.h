// Users and items of a few tastes: a user takes items that suit him.
#pragma once

#include <cstdint>

#include "models/example.h"

namespace models {

struct InteractionOptions {
  int64_t users = 200;
  int64_t items = 300;
  int64_t negatives = 2;  // for each item that a user takes
  uint64_t seed = 1;
};

// Inputs: {"users", "items"}, int64 [rows] each; labels: float32 [rows, 1], 1 where the user takes
// the item.
Rows make_interactions(int64_t rows, const InteractionOptions& options);

}  // namespace models
