#include "cohort/ops/random.h"

#include <ATen/ops/zeros.h>

#include <atomic>
#include <cmath>
#include <mutex>
#include <random>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/recording/step_recording.h"
#include "cohort/ops/generator_streams.h"
#include "cohort/ops/philox.h"
#include "cohort/ops/random_checks.h"
#include "cohort/ops/random_fill.h"
#include "cohort/ops/testing_seed.h"

namespace cohort::random {
namespace {

using internal::Philox;
using internal::StepRecording;
using internal::str;

// Every value of an integer dtype; as doubles its bounds are exact.
UniformOptions full_range(DType dtype) {
  const bool is_signed = dtype != uint8;
  const auto bits = static_cast<int>(8 * c10::elementSize(dtype));
  const double size = std::ldexp(1.0, bits);
  return {
      .minval = is_signed ? -size / 2 : 0, .maxval = is_signed ? size / 2 : size, .dtype = dtype};
}

template <class Options>
Tensor drawn(const std::shared_ptr<internal::GeneratorStreams>& streams,
             void (*fill)(Philox&, const Tensor&, const Options&), at::IntArrayRef shape,
             const Options& options) {
  return internal::drawn_on_host(
      shape, options.dtype, [streams, fill, options](const Tensor& host) {
        streams->draw([&](Philox& random) { fill(random, host, options); });
      });
}

// Numbers that stay on the host may decide what a step does.
void not_in_recorded_step() {
  if (StepRecording* const recording = StepRecording::current()) {
    recording->refuse(
        "the host uses the numbers of a random generator (next_u64, make_seeds, skip)");
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

RandomGenerator::RandomGenerator(std::shared_ptr<internal::GeneratorStreams> streams)
    : streams_(std::move(streams)) {}

RandomGenerator RandomGenerator::from_seed(uint64_t seed, uint64_t stream) {
  return RandomGenerator(std::make_shared<internal::GeneratorStreams>(
      Philox(seed, stream), internal::calling_replica_group()));
}

RandomGenerator RandomGenerator::from_non_deterministic_state() {
  return from_seed(operating_system_seed());
}

Tensor RandomGenerator::uniform(at::IntArrayRef shape, UniformOptions options) const {
  internal::check_uniform("uniform", shape, options);
  return drawn(streams_.pointer(), internal::fill_uniform, shape, options);
}

Tensor RandomGenerator::normal(at::IntArrayRef shape, NormalOptions options) const {
  internal::check_normal("normal", shape, options);
  return drawn(streams_.pointer(), internal::fill_normal, shape, options);
}

Tensor RandomGenerator::truncated_normal(at::IntArrayRef shape, NormalOptions options) const {
  internal::check_normal("truncated_normal", shape, options);
  return drawn(streams_.pointer(), internal::fill_truncated_normal, shape, options);
}

Tensor RandomGenerator::uniform_full_int(at::IntArrayRef shape, DType dtype) const {
  internal::check_uniform_full_int("uniform_full_int", shape, dtype);
  return drawn(streams_.pointer(), internal::fill_uniform, shape, full_range(dtype));
}

uint64_t RandomGenerator::next_u64() const {
  not_in_recorded_step();
  uint64_t number = 0;
  streams_->draw([&](Philox& random) { number = random.next_u64(); });
  return number;
}

void RandomGenerator::skip(uint64_t count) const {
  not_in_recorded_step();
  streams_->draw([&](Philox& random) { random.seek(random.position() + count); });
}

std::vector<RandomGenerator> RandomGenerator::split(int64_t count) const {
  const Tensor seeds = make_seeds(count);
  std::vector<RandomGenerator> generators;
  for (int64_t i = 0; i < count; ++i) {
    generators.push_back(from_seed(static_cast<uint64_t>(seeds.data_ptr<int64_t>()[i])));
  }
  return generators;
}

Tensor RandomGenerator::make_seeds(int64_t count) const {
  if (count < 0) {
    throw InvalidArgumentError(
        str("a RandomGenerator was asked for ", count, " seeds; ask for 0 or more"));
  }
  not_in_recorded_step();
  Tensor seeds = at::zeros({2, count}, int64);
  const Tensor drawn_row = seeds.select(0, 0);
  streams_->draw(
      [&](Philox& random) { internal::fill_uniform(random, drawn_row, full_range(int64)); });
  return seeds;
}

RandomGenerator::State RandomGenerator::state() const { return streams_->state(); }

void RandomGenerator::restore(const State& state) const { streams_->restore(state); }

void set_seed(uint64_t seed) {
  Context& shared = context();
  std::lock_guard lock(shared.mutex);
  shared.seed = seed;
  shared.seeds_given = 0;
  ++shared.epoch;
  // The generator stays the same object: checkpoints hold on to it.
  if (!shared.global) shared.global = internal::make_stream(seed);
  shared.global->restore({.seed = seed});
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
  if (!shared.global) shared.global = internal::make_stream(operating_system_seed());
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

GeneratorStreams& streams_of(const random::RandomGenerator& generator) {
  return *generator.streams_;
}

random::RandomGenerator make_stream(uint64_t seed, uint64_t stream) {
  return random::RandomGenerator(std::make_shared<GeneratorStreams>(Philox(seed, stream), nullptr));
}

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

void set_seed_if_none(uint64_t seed) {
  random::Context& shared = random::context();
  const std::lock_guard lock(shared.mutex);
  if (!shared.seed) shared.seed = seed;
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
