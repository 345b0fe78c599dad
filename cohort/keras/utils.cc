#include "cohort/keras/utils.h"

#include <ATen/Context.h>

#include "cohort/ops/random.h"

namespace cohort::keras::utils {

void set_random_seed(uint64_t seed) {
  random::set_seed(seed);
  at::manual_seed(seed);
}

}  // namespace cohort::keras::utils
