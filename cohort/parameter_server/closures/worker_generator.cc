#include "cohort/parameter_server/closures/worker_generator.h"

#include "cohort/ops/generator_streams.h"

namespace cohort::internal {

const random::RandomGenerator& WorkerGenerator::get() {
  const uint64_t epoch = seed_epoch();
  if (generator_ && epoch_ == epoch) return *generator_;
  const std::optional<uint64_t> seed = random::get_seed();
  const auto fresh = make_stream(seed ? *seed : next_seed(), first_stream_of(worker_));
  if (generator_) {
    generator_->restore(fresh.state());  // functions may hold on to it
  } else {
    generator_ = fresh;
  }
  epoch_ = epoch;
  return *generator_;
}

}  // namespace cohort::internal
