// The random numbers that a worker's functions draw outside of steps.
#pragma once

#include <cstdint>
#include <optional>

#include "cohort/ops/random.h"

namespace cohort::internal {

// random::get_global_generator() of a worker: a stream of the seed of random::set_seed and of the
// worker's index, so that no two workers draw the same. Worker 0 draws what a program without a
// cluster would.
// Thread safety: none.
class WorkerGenerator {
 public:
  explicit WorkerGenerator(int worker) : worker_(worker) {}

  // The same one at each call; its stream begins anew after set_seed.
  const random::RandomGenerator& get();

 private:
  const int worker_;
  uint64_t epoch_ = 0;  // of the seed
  std::optional<random::RandomGenerator> generator_;
};

}  // namespace cohort::internal
