// The shards of variables that have ended at the coordinator, until their ps tasks have freed them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "cohort/cluster/rpc/clock.h"
#include "cohort/parameter_server/store/store_client.h"

namespace cohort::internal {

// They are freed within a second of the end of what may use them still: the closures that were
// scheduled and the steps that had begun before, and the programs of other tasks up to where the
// coordinator's has let go of them. Many are told to a ps task in one message, for whose answer
// nobody waits.
// Thread safety: any thread.
class ReleasedShards : public std::enable_shared_from_this<ReleasedShards> {
 public:
  using Shards = std::vector<StoreClient::Release>;

  // How far what the coordinator runs has come: numbers of closures, of its own steps, and of the
  // calls of fit, evaluate and predict, in front of which each task's program has its own lines.
  struct Progress {
    uint64_t closures = 0;
    uint64_t steps = 0;
    int64_t calls = 0;
  };
  // All but `begun` are called without a lock.
  struct Surroundings {
    // All that may use what ends now has lower numbers. Called by add: it takes no lock that others
    // may hold for long.
    std::function<Progress()> begun;
    std::function<Progress()> ended;  // all that has lower numbers has ended
    // See StoreClient::release.
    std::function<void(const Shards&, const StoreClient::Failed&)> release;
    rpc::Clock* clock = nullptr;  // null: the real one, whose thread begins with the first shards
  };
  explicit ReleasedShards(Surroundings surroundings);

  // May be called with any lock held.
  void add(Shards shards);
  // Calls nothing of the surroundings from here on; what is left stays at the ps tasks.
  void stop() noexcept;

 private:
  struct Batch {
    Shards shards;
    int attempts = 0;     // to tell their ps task
    Progress begun = {};  // at their variables' end
  };
  void add_batch(Batch batch);
  void wake();  // with mutex_ held
  void work();
  void release_what_has_ended();

  const Surroundings around_;
  std::vector<Batch> waiting_;  // of the clock's thread

  std::mutex mutex_;  // guards what follows
  std::unique_ptr<rpc::Clock> own_clock_;
  std::vector<Batch> added_;
  bool is_awake_ = false;  // work() will be called
  bool is_stopped_ = false;
};

}  // namespace cohort::internal
