// Neural collaborative filtering (He et al., 2017): NeuMF, a product of factors beside a tower of
// dense layers, of a user and an item.
#pragma once

#include <cstdint>
#include <vector>

#include "models/example.h"

namespace models {

struct NcfConfig {
  int64_t users = 200;
  int64_t items = 300;
  int64_t factors = 8;                       // of the product
  std::vector<int64_t> tower = {32, 16, 8};  // units; its embeddings have half of the first's each
};

// {"users", "items"}: int64 [batch] each -> the logit of an interaction, [batch, 1].
cohort::keras::ModelHandle make_ncf(const NcfConfig& config);

// It learns who takes what (interactions.h).
Example ncf_example(const NcfConfig& config);

}  // namespace models
