// Random streams of a seed that a layer was given, for each replica. For sources of layers.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/program/task.h"
#include "cohort/ops/random.h"
#include "cohort/train/objects/trackable.h"

namespace cohort::internal {

// A stream of one seed for each replica of each task. In a checkpoint those of one task:
// "replica_0", "replica_1", ...
// Thread safety: any thread.
class ReplicaGenerators final : public train::Trackable {
 public:
  explicit ReplicaGenerators(uint64_t seed) : seed_(seed) {}

  // The calling replica's generator. The first replica of a task to come makes those of all, so
  // that a checkpoint holds the same generators whichever replicas have drawn.
  random::RandomGenerator get();

  std::vector<train::TrackableChild> checkpoint_children() override;

 private:
  struct Stream {
    random::RandomGenerator generator;
    train::TrackableHandle in_checkpoint;
  };

  // Nothing where the task has not as many as `count`.
  std::optional<random::RandomGenerator> find(int task, size_t id, size_t count) const;
  size_t number_of(int task) const;
  // The task's next one, with making_ held. Nobody draws from it before it is restored.
  void add(int task, size_t i);
  // Checkpoints hold task 0's streams, or the maker's where task 0 has drawn none.
  bool is_saved(int task) const;

  const uint64_t seed_;
  const int maker_ = Task::current().index();
  // Held while a stream is made and restored. mutex_ is not: a restore may ask for the children.
  std::mutex making_;
  mutable std::mutex mutex_;                    // guards what follows
  std::map<int, std::vector<Stream>> streams_;  // by task_of_streams
};

// What random layers draw from: streams of their own seed, in checkpoints as "_random_generator",
// or without a seed the generator of the calling replica.
// Thread safety: any thread.
class LayerGenerator {
 public:
  explicit LayerGenerator(const std::optional<uint64_t>& seed)
      : generators_(seed ? std::make_unique<ReplicaGenerators>(*seed) : nullptr) {}

  random::RandomGenerator get() const {
    return generators_ ? generators_->get() : random::get_global_generator();
  }
  // Adds what a checkpoint of the layer holds of it.
  void add_to(std::vector<train::TrackableChild>& children) const {
    if (generators_) children.push_back({"_random_generator", &*generators_});
  }

 private:
  std::unique_ptr<ReplicaGenerators> generators_;  // with a seed
};

}  // namespace cohort::internal
