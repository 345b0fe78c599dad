#include "cohort/keras/layers/dropout.h"

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "cohort/core/task.h"
#include "cohort/distribute/context.h"
#include "cohort/distribute/context_stack.h"
#include "cohort/distribute/replica_context.h"
#include "cohort/distribute/replica_streams.h"
#include "cohort/distribute/strategy_core.h"
#include "cohort/keras/layers/kept_elements.h"
#include "cohort/keras/layers/operation.h"
#include "cohort/keras/masks.h"
#include "cohort/keras/saving/layer_config.h"
#include "cohort/ops/generator_streams.h"
#include "cohort/ops/random.h"
#include "cohort/train/trackable.h"

namespace cohort::keras::layers {
namespace {

// A stream of one seed for each replica of each task. In a checkpoint, of the layer's own task alone:
// "replica_0", "replica_1", ...
class ReplicaGenerators final : public train::Trackable {
 public:
  explicit ReplicaGenerators(uint64_t seed) : seed_(seed) {}

  // That of the calling replica. The first replica of a task to come makes those of all, so that a
  // checkpoint holds the same generators whichever replicas have drawn.
  random::RandomGenerator get() {
    const distribute::ReplicaContext* replica = distribute::get_replica_context();
    const auto id =
        static_cast<size_t>(replica == nullptr ? 0 : replica->replica_id_in_sync_group());
    const auto count =
        static_cast<size_t>(replica == nullptr ? 1 : replica->num_replicas_in_sync());
    const int task = internal::task_of_streams(internal::current_core()->group());
    std::lock_guard lock(mutex_);
    Streams& its = streams_[task];
    while (its.size() < count) add(task, its);
    return its[id].generator;
  }

  std::vector<train::TrackableChild> checkpoint_children() override {
    std::vector<train::TrackableChild> children;
    const auto its = streams_.find(saved_task());
    if (its == streams_.end()) return children;
    for (size_t i = 0; i < its->second.size(); ++i) children.push_back(child(its->second, i));
    return children;
  }

 private:
  struct Stream {
    random::RandomGenerator generator;
    train::TrackableHandle in_checkpoint;
  };

  using Streams = std::vector<Stream>;

  void add(int task, Streams& its) {
    const auto generator =
        internal::make_stream(seed_, internal::first_stream_of(task) + its.size());
    its.push_back({generator, train::TrackableHandle(generator)});
    if (task != saved_task()) return;
    const train::TrackableChild added = child(its, its.size() - 1);
    try {
      child_appeared(added.name, *added.object);
    } catch (...) {
      its.pop_back();  // it must not draw from the start where a restored position was meant
      throw;
    }
  }
  // The first one, or that which has made the layer, where it does not share it.
  int saved_task() const { return streams_.contains(0) ? 0 : maker_; }
  static train::TrackableChild child(const Streams& its, size_t i) {
    return {internal::str("replica_", i), its[i].in_checkpoint.get().get()};
  }

  const uint64_t seed_;
  const int maker_ = internal::Task::current().index();
  std::mutex mutex_;
  std::map<int, Streams> streams_;  // guarded by mutex_; by task_of_streams
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
      : Layer("Dropout", {.name = options.name}), rate_(rate), seed_(options.seed) {
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
  std::optional<int64_t> seed_;
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
  std::optional<int64_t> seed;
  layers::DropoutOptions options;
  field.common(options);
  layers::dropout_fields(field, rate, seed);
  options.seed = seed;
  return layers::Dropout(rate, std::move(options));
}

}  // namespace cohort::internal
