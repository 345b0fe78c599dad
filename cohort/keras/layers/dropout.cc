#include "cohort/keras/layers/dropout.h"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/program/task.h"
#include "cohort/distribute/core/context_stack.h"
#include "cohort/distribute/core/replica_streams.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/keras/base/masks.h"
#include "cohort/keras/layers/base/kept_elements.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/base/operation.h"
#include "cohort/ops/generator_streams.h"
#include "cohort/ops/random.h"
#include "cohort/train/objects/trackable.h"

namespace cohort::keras::layers {
namespace {

// A stream of one seed for each replica of each task. In a checkpoint those of one task:
// "replica_0", "replica_1", ...
class ReplicaGenerators final : public train::Trackable {
 public:
  explicit ReplicaGenerators(uint64_t seed) : seed_(seed) {}

  // The calling replica's generator. The first replica of a task to come makes those of all, so
  // that a checkpoint holds the same generators whichever replicas have drawn.
  random::RandomGenerator get() {
    const distribute::ReplicaContext* replica = distribute::get_replica_context();
    const auto id =
        static_cast<size_t>(replica == nullptr ? 0 : replica->replica_id_in_sync_group());
    const auto count =
        static_cast<size_t>(replica == nullptr ? 1 : replica->num_replicas_in_sync());
    const int task = internal::task_of_streams(internal::current_core()->group());
    if (std::optional<random::RandomGenerator> made = find(task, id, count)) return *made;
    const std::lock_guard lock(making_);
    for (size_t i = number_of(task); i < count; ++i) add(task, i);
    return find(task, id, count).value();
  }

  std::vector<train::TrackableChild> checkpoint_children() override {
    std::vector<train::TrackableChild> children;
    const std::lock_guard lock(mutex_);
    const auto its = streams_.find(streams_.contains(0) ? 0 : maker_);
    if (its == streams_.end()) return children;
    for (size_t i = 0; i < its->second.size(); ++i) {
      children.push_back({name_of(i), its->second[i].in_checkpoint.get().get()});
    }
    return children;
  }

 private:
  struct Stream {
    random::RandomGenerator generator;
    train::TrackableHandle in_checkpoint;
  };

  static std::string name_of(size_t stream) { return internal::str("replica_", stream); }

  // Nothing where the task has not as many as `count`.
  std::optional<random::RandomGenerator> find(int task, size_t id, size_t count) const {
    const std::lock_guard lock(mutex_);
    const auto its = streams_.find(task);
    if (its == streams_.end() || its->second.size() < count) return std::nullopt;
    return its->second[id].generator;
  }
  size_t number_of(int task) const {
    const std::lock_guard lock(mutex_);
    const auto its = streams_.find(task);
    return its == streams_.end() ? 0 : its->second.size();
  }

  // The task's next one, with making_ held. Nobody draws from it before it is restored.
  void add(int task, size_t i) {
    const auto generator = internal::make_stream(seed_, internal::first_stream_of(task) + i);
    Stream made{generator, train::TrackableHandle(generator)};
    if (is_saved(task)) child_appeared(name_of(i), *made.in_checkpoint);
    const std::lock_guard lock(mutex_);
    streams_[task].push_back(std::move(made));
  }
  // Checkpoints hold task 0's streams, or the maker's where task 0 has drawn none.
  bool is_saved(int task) const {
    const std::lock_guard lock(mutex_);
    return task == 0 || (task == maker_ && !streams_.contains(0));
  }

  const uint64_t seed_;
  const int maker_ = internal::Task::current().index();
  // Held while a stream is made and restored. mutex_ is not: a restore may ask for the children.
  std::mutex making_;
  mutable std::mutex mutex_;                    // guards what follows
  std::map<int, std::vector<Stream>> streams_;  // by task_of_streams
};

template <class Fields, class Rate, class Seed>
void dropout_fields(Fields& field, Rate& rate, Seed& seed) {
  field("rate", rate);
  field.always("noise_shape", nullptr);
  field("seed", seed);
}

class DropoutImpl final : public Layer, public internal::DescribesOperation {
 public:
  DropoutImpl(double rate, const DropoutOptions& options)
      : Layer("Dropout", {.name = options.name, .dtype = options.dtype}),
        rate_(rate),
        seed_(options.seed) {
    internal::check_rate(rate, "Dropout", "rate");
    set_input_spec({.floating = true});
    if (options.seed) generators_ = std::make_unique<ReplicaGenerators>(*options.seed);
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this,
                                  [this](auto& field) { dropout_fields(field, rate_, seed_); });
  }

  internal::LayerOperation operation(bool training) const override {
    if (rate_ == 0) return {};
    if (rate_ == 1) return {.why_not = "it drops everything"};
    if (!training) return {.depends_on_training = true};
    return {.operations = {internal::plan::Dropout{.rate = rate_}},
            .depends_on_training = true,
            .draw = [this](at::IntArrayRef shape) { return draw(shape, float32); }};
  }

  std::vector<train::TrackableChild> checkpoint_children() override {
    std::vector<train::TrackableChild> children = Layer::checkpoint_children();
    if (generators_) children.push_back({"_random_generator", &*generators_});
    return children;
  }

 protected:
  Tensor call(const Tensor& input, const CallOptions& options) override {
    if (!*options.training || rate_ == 0) return input;
    if (rate_ == 1) return internal::keep_mask(input, input * 0);
    const Tensor kept = draw(input.sizes(), input.options());
    return internal::keep_mask(input, input * kept / (1 - rate_));
  }

 private:
  // What is kept.
  Tensor draw(at::IntArrayRef shape, const at::TensorOptions& options) const {
    const random::RandomGenerator generator =
        generators_ ? generators_->get() : random::get_global_generator();
    return internal::kept_elements(generator, shape, rate_, options);
  }

  double rate_;
  std::optional<uint64_t> seed_;
  std::unique_ptr<ReplicaGenerators> generators_;  // with a seed
};

}  // namespace

Dropout::Dropout(double rate, DropoutOptions options)
    : LayerHandle(std::make_shared<DropoutImpl>(rate, options)) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

layers::LayerHandle read_dropout(FieldReader& field) {
  double rate = 0;
  std::optional<uint64_t> seed;
  layers::DropoutOptions options;
  field.common(options);
  layers::dropout_fields(field, rate, seed);
  options.seed = seed;
  return layers::Dropout(rate, std::move(options));
}

}  // namespace cohort::internal
