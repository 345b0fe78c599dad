// The communicator of a task that is alone and waits for no other.
#pragma once

#include <mutex>
#include <vector>

#include "cohort/collective/communicator.h"

namespace cohort::collective {

// The buffers of one call are still added and copied to each other.
// Thread safety: any thread.
class SoleCommunicator final : public Communicator {
 public:
  explicit SoleCommunicator(int64_t generation = 0) : generation_(generation) {}

  int rank() const override { return 0; }
  int size() const override { return 1; }
  int64_t generation() const override { return generation_; }
  Buffer buffer(int64_t bytes) override;

  std::unique_ptr<Work> all_reduce(std::span<const Buffer> buffers,
                                   const CallOptions& options) override;
  std::unique_ptr<Work> reduce_scatter(std::span<const Buffer> buffers,
                                       std::span<const int64_t> counts,
                                       const CallOptions& options) override;
  std::unique_ptr<Work> all_gather(std::span<const Buffer> buffers, std::span<const int64_t> counts,
                                   const CallOptions& options) override;
  std::unique_ptr<Work> broadcast(std::span<const Buffer> buffers, int root,
                                  const CallOptions& options) override;
  void barrier(const CallOptions&) override {}
  // Does nothing: there is no other task to tell, and no call that waits.
  void abort(const std::exception_ptr&) noexcept override {}

 private:
  const int64_t generation_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<char[]>> memory_;  // guarded by mutex_
};

}  // namespace cohort::collective
