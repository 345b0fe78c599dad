#include "cohort/ops/random.h"

#include <ATen/ops/empty.h>

#include <atomic>
#include <cmath>
#include <mutex>
#include <random>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/ops/philox.h"
#include "cohort/ops/random_fill.h"
#include "cohort/ops/testing_seed.h"

namespace cohort::random {
namespace {

using internal::Philox;
using internal::str;

void check_shape(const char* what, at::IntArrayRef shape) {
  for (int64_t size : shape) {
    if (size < 0) {
      throw InvalidArgumentError(str("random::", what, " was asked for the shape ",
                                     internal::shape_str(shape), ", which has a negative size"));
    }
  }
}

[[noreturn]] void refuse_dtype(const char* what, DType dtype, const char* wanted) {
  throw InvalidArgumentError(str("random::", what, " makes ", wanted, " tensors, but got dtype ",
                                 internal::dtype_name(dtype)));
}

Tensor new_tensor(at::IntArrayRef shape, DType dtype) {
  return at::empty(shape, at::TensorOptions().dtype(dtype));
}

void check_normal(const char* what, at::IntArrayRef shape, const NormalOptions& options) {
  check_shape(what, shape);
  if (!internal::is_random_float(options.dtype)) {
    refuse_dtype(what, options.dtype, "floating-point");
  }
  if (!std::isfinite(options.mean) || !std::isfinite(options.stddev) || options.stddev < 0) {
    throw InvalidArgumentError(str("random::", what,
                                   " needs a finite mean and a finite stddev from 0 on, but got ",
                                   "mean ", options.mean, ", stddev ", options.stddev));
  }
}

uint64_t operating_system_seed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

// What set_seed sets.
struct Context {
  std::mutex mutex;
  std::optional<uint64_t> seed;
  uint64_t seeds_given = 0;  // by next_seed, since set_seed
  std::atomic<uint64_t> epoch{0};
  std::optional<RandomGenerator> global;
};

// Made at first use and never destroyed, so that neither start-up nor exit has an order.
Context& context() {
  static auto* const instance = new Context;
  return *instance;
}

thread_local const RandomGenerator* scoped_generator = nullptr;
thread_local internal::SeedScope* seed_scope = nullptr;

}  // namespace

struct RandomGenerator::Impl {
  std::mutex mutex;
  Philox random;  // guarded by mutex

  template <class Options>
  Tensor draw(void (*fill)(Philox&, const Tensor&, const Options&), at::IntArrayRef shape,
              const Options& options) {
    Tensor result = new_tensor(shape, options.dtype);
    std::lock_guard lock(mutex);
    fill(random, result, options);
    return result;
  }
};

RandomGenerator::RandomGenerator(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

RandomGenerator RandomGenerator::from_seed(uint64_t seed, uint64_t stream) {
  auto impl = std::make_shared<Impl>();
  impl->random = Philox(seed, stream);
  return RandomGenerator(std::move(impl));
}

RandomGenerator RandomGenerator::from_non_deterministic_state() {
  return from_seed(operating_system_seed());
}

Tensor RandomGenerator::uniform(at::IntArrayRef shape, UniformOptions options) const {
  check_shape("uniform", shape);
  const bool floating = internal::is_random_float(options.dtype);
  if (!floating && !internal::is_random_integer(options.dtype)) {
    refuse_dtype("uniform", options.dtype, "floating-point or integer");
  }
  if (!(options.minval < options.maxval) || !std::isfinite(options.maxval - options.minval)) {
    throw InvalidArgumentError(
        str("random::uniform needs minval below maxval, both finite, but got [", options.minval,
            ", ", options.maxval, ")"));
  }
  return impl_->draw(internal::fill_uniform, shape, options);
}

Tensor RandomGenerator::normal(at::IntArrayRef shape, NormalOptions options) const {
  check_normal("normal", shape, options);
  return impl_->draw(internal::fill_normal, shape, options);
}

Tensor RandomGenerator::truncated_normal(at::IntArrayRef shape, NormalOptions options) const {
  check_normal("truncated_normal", shape, options);
  return impl_->draw(internal::fill_truncated_normal, shape, options);
}

uint64_t RandomGenerator::next_u64() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->random.next_u64();
}

RandomGenerator::State RandomGenerator::state() const {
  std::lock_guard lock(impl_->mutex);
  return {.seed = impl_->random.seed(),
          .stream = impl_->random.stream(),
          .position = impl_->random.position()};
}

void RandomGenerator::restore(const State& state) const {
  std::lock_guard lock(impl_->mutex);
  impl_->random = Philox(state.seed, state.stream);
  impl_->random.seek(state.position);
}

void set_seed(uint64_t seed) {
  Context& shared = context();
  std::lock_guard lock(shared.mutex);
  shared.seed = seed;
  shared.seeds_given = 0;
  ++shared.epoch;
  // The generator stays the same object: checkpoints hold on to it.
  const RandomGenerator fresh = RandomGenerator::from_seed(seed);
  if (!shared.global) shared.global = fresh;
  shared.global->restore(fresh.state());
}

std::optional<uint64_t> get_seed() {
  Context& shared = context();
  std::lock_guard lock(shared.mutex);
  return shared.seed;
}

RandomGenerator get_global_generator() {
  if (scoped_generator != nullptr) return *scoped_generator;
  Context& shared = context();
  std::lock_guard lock(shared.mutex);
  if (!shared.global) shared.global = RandomGenerator::from_non_deterministic_state();
  return *shared.global;
}

Tensor uniform(at::IntArrayRef shape, UniformOptions options) {
  return get_global_generator().uniform(shape, options);
}
Tensor normal(at::IntArrayRef shape, NormalOptions options) {
  return get_global_generator().normal(shape, options);
}
Tensor truncated_normal(at::IntArrayRef shape, NormalOptions options) {
  return get_global_generator().truncated_normal(shape, options);
}

}  // namespace cohort::random

namespace cohort::internal {

SeedScope::SeedScope(uint64_t seed)
    : seed_(seed), outer_(std::exchange(random::seed_scope, this)) {}

SeedScope::~SeedScope() { random::seed_scope = outer_; }

uint64_t next_seed() {
  if (SeedScope* scope = random::seed_scope) return mix_seeds(scope->seed_, scope->given_++);
  random::Context& shared = random::context();
  std::lock_guard lock(shared.mutex);
  if (!shared.seed) return random::operating_system_seed();
  return mix_seeds(*shared.seed, shared.seeds_given++);
}

void forget_seed() {
  random::Context& shared = random::context();
  std::lock_guard lock(shared.mutex);
  shared.seed.reset();
}

uint64_t seed_epoch() { return random::context().epoch; }

ScopedGenerator::ScopedGenerator(const random::RandomGenerator& generator)
    : previous_(std::exchange(random::scoped_generator, &generator)) {}

ScopedGenerator::~ScopedGenerator() { random::scoped_generator = previous_; }

}  // namespace cohort::internal
