// The streams behind a random::RandomGenerator: one, or beside it one for each replica that draws.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cohort/core/function_ref.h"
#include "cohort/ops/philox.h"
#include "cohort/ops/random.h"

namespace cohort::train {
class SaveGroup;
}

namespace cohort::internal {

// A strategy as its generators see it.
class ReplicaGroup {
 public:
  virtual ~ReplicaGroup() = default;
  // The replicas of the calling thread's task, by their ids in the sync group.
  virtual std::vector<int> local_replicas() const = 0;
  // See train::Trackable::save_group.
  virtual std::shared_ptr<train::SaveGroup> save_group() const = 0;
};

// What the layer that knows strategies says of the calling thread.
struct ReplicaLookup {
  // The strategy in whose cross-replica context the thread is; nullptr: in none.
  std::shared_ptr<ReplicaGroup> (*group)() = nullptr;
  // The id in the sync group of the replica that the thread runs; missing across replicas, and
  // outside of every strategy.
  std::optional<int> (*replica)() = nullptr;
};
// `lookup` lives as long as the process.
void set_replica_lookup(const ReplicaLookup& lookup);
// ReplicaLookup::group; nullptr where nobody knows strategies.
std::shared_ptr<ReplicaGroup> calling_replica_group();

// Without a group: one stream, for whoever draws. With one, replica r of the sync group draws from a
// stream that follows from the seed and r alone. Draws across replicas are from the generator's own
// stream, and every replica's stream passes over as many words.
// Thread safety: each call is atomic. Replicas do not wait for each other.
class GeneratorStreams {
 public:
  using State = random::RandomGenerator::State;

  GeneratorStreams(Philox own, std::shared_ptr<ReplicaGroup> group);

  // Calls draw(stream) for the stream that the calling thread draws from.
  void draw(FunctionRef<void(Philox&)> draw);
  // The state of that stream. Restored across replicas, all replicas' streams begin anew from it.
  State state() const;
  void restore(const State& state);

  // For checkpoints; missing `replica`: the generator's own stream.
  const std::shared_ptr<ReplicaGroup>& group() const { return group_; }
  // Those of the calling thread's task; none without a group.
  std::vector<int> local_replicas() const;
  State state_of(std::optional<int> replica) const;
  void restore_of(std::optional<int> replica, const State& state);

 private:
  struct Stream {
    explicit Stream(Philox philox) : random(philox) {}
    mutable std::mutex mutex;
    Philox random;  // guarded by mutex
  };

  // The calling thread's replica, if it has a stream of its own.
  std::optional<int> caller() const;
  // Made where it is missing: it begins where the generator's own stream stands.
  Stream& stream_of(std::optional<int> replica) const;
  Philox replica_stream(int replica) const;

  const std::shared_ptr<ReplicaGroup> group_;
  mutable Stream own_;
  mutable std::mutex replicas_mutex_;  // taken before own_'s
  // By id; guarded by replicas_mutex_. Streams stay where they are.
  mutable std::map<int, std::unique_ptr<Stream>> replicas_;
};

// Errors: FailedPrecondition (moved from).
GeneratorStreams& streams_of(const random::RandomGenerator& generator);

}  // namespace cohort::internal
