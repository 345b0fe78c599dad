// The streams behind a random::RandomGenerator: one, or beside it one for each replica that draws.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/function_ref.h"
#include "cohort/ops/philox.h"
#include "cohort/ops/random_options.h"

namespace cohort::train {
class SaveGroup;
}

namespace cohort::internal {

// The first stream of a task, beside those of the first task, if each task runs steps of its own.
constexpr uint64_t first_stream_of(int task) { return static_cast<uint64_t>(task) << 32; }

// A strategy as its generators see it.
class GeneratorStreams;
class ReplicaGroup {
 public:
  virtual ~ReplicaGroup() = default;
  // The index of the calling thread's task, where each task runs steps of its own; 0 where they run
  // them together.
  virtual int task() const = 0;
  // The replicas of the calling thread's task, by their ids in the sync group.
  virtual std::vector<int> local_replicas() const = 0;
  // See train::Trackable::save_group.
  virtual std::shared_ptr<train::SaveGroup> save_group() const = 0;
  // Tells the group of a generator that draws for its replicas, for as long as what is returned
  // lives; null: it need not know.
  virtual std::shared_ptr<void> add(GeneratorStreams&) { return nullptr; }
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

// The same as random::set_seed in a program that has set none. Thread safety: any thread.
COHORT_API void set_seed_if_none(uint64_t seed);

// The streams of a generator. If it has no group, there is one stream, for whoever draws. Else
// replica r of the sync group draws from a stream that follows from the seed and r alone, and from
// the task's index if each task runs steps of its own. Draws across replicas are from the task's
// own stream, and the stream of each of its replicas passes over as many words. Thread safety: each
// call is atomic. Replicas do not wait for each other.
class GeneratorStreams {
 public:
  using State = random::GeneratorState;

  GeneratorStreams(Philox own, std::shared_ptr<ReplicaGroup> group);

  // Calls draw(stream) for the stream that the calling thread draws from.
  void draw(FunctionRef<void(Philox&)> draw);
  // The state of that stream. Restored across replicas, the task's replicas' streams begin anew
  // from it; in the first task, those of the others, too.
  State state() const;
  void restore(const State& state);

  // For checkpoints, of the calling thread's task; missing `replica`: the task's own stream.
  const std::shared_ptr<ReplicaGroup>& group() const { return group_; }
  // None without a group.
  std::vector<int> local_replicas() const;
  State state_of(std::optional<int> replica) const;
  void restore_of(std::optional<int> replica, const State& state);
  // The states of the task's own stream and of a replica's, for tasks that go on for each other.
  // Neither changes another stream.
  struct States {
    State own;
    State of_replica;
  };
  States states_of(int replica) const;
  void set_states_of(int replica, const States& states);

 private:
  struct Stream {
    explicit Stream(Philox philox) : random(philox) {}
    mutable std::mutex mutex;
    Philox random;  // guarded by mutex
  };

  // A task's own stream, and those of its replicas.
  struct Streams {
    explicit Streams(Philox philox) : own(philox) {}
    // Made where it is missing: it begins where the task's own stream stands.
    Stream& of(std::optional<int> replica);
    void restore_own(const Philox& philox);

    Stream own;
    std::mutex replicas_mutex;  // taken before own's
    // Streams by replica id; guarded by replicas_mutex. They stay where they are.
    std::map<int, std::unique_ptr<Stream>> replicas;
  };

  // The calling thread's replica, if it has a stream of its own.
  std::optional<int> caller() const;
  // The streams of the calling thread's task. They are made if they are missing, and begin as the
  // first task's did.
  Streams& streams() const;

  const std::shared_ptr<ReplicaGroup> group_;
  mutable Streams first_;
  mutable std::mutex others_mutex_;  // taken before those of streams; guards what follows
  State start_;                      // of the first task's own stream
  mutable std::map<int, std::unique_ptr<Streams>> others_;  // by their tasks
  const std::shared_ptr<void> in_group_;
};

}  // namespace cohort::internal
