#include "cohort/collective/in_process_communicator.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "cohort/collective/local_buffers.h"
#include "cohort/collective/slices.h"
#include "cohort/collective/thread_group.h"

namespace cohort::collective {
namespace {

using internal::str;

// The state that the tasks share.
struct Hub {
  explicit Hub(int size) : group(size, std::chrono::nanoseconds(0), {.noun = "task"}) {
    group.begin({});
  }

  ThreadGroup group;
  std::mutex mutex;
  std::exception_ptr reason;  // of the first abort, guarded by mutex
};

// The arguments of one task in a call.
struct Call {
  const char* operation;
  std::span<const Buffer> buffers;
  uint64_t fingerprint;
};
using Calls = std::span<void* const>;

const Call& of_task(Calls all, size_t rank) { return *static_cast<const Call*>(all[rank]); }

// Tasks read each other's memory, so that calls with different operations or sizes must not pass.
void check_same_calls(Calls all) {
  const Call& first = of_task(all, 0);
  for (size_t rank = 1; rank < all.size(); ++rank) {
    const Call& other = of_task(all, rank);
    if (other.fingerprint != first.fingerprint) {
      throw DifferentCallsError(str("tasks 0 and ", rank, " make different calls"));
    }
    if (std::strcmp(other.operation, first.operation) != 0) {
      throw FailedPreconditionError(str("task 0 calls ", first.operation, ", task ", rank, ' ',
                                        other.operation,
                                        "; every task must make the same calls in one order"));
    }
  }
  if (first.buffers.empty()) return;
  const Buffer& sample = first.buffers[0];
  for (size_t rank = 0; rank < all.size(); ++rank) {
    for (const Buffer& buffer : of_task(all, rank).buffers) {
      if (buffer.count == sample.count && buffer.dtype == sample.dtype) continue;
      throw InvalidArgumentError(str(
          "task 0 brings ", sample.count, " elements of ", internal::dtype_name(sample.dtype),
          ", task ", rank, " brings ", buffer.count, " of ", internal::dtype_name(buffer.dtype)));
    }
  }
}

class InProcessCommunicator final : public Communicator {
 public:
  InProcessCommunicator(std::shared_ptr<Hub> hub, int rank, int64_t generation)
      : hub_(std::move(hub)), rank_(rank), generation_(generation) {}

  int rank() const override { return rank_; }
  int size() const override { return hub_->group.size(); }
  int64_t generation() const override { return generation_; }
  bool compares_fingerprints(int64_t /*bytes*/) const override { return true; }

  Buffer buffer(int64_t bytes) override {
    const std::lock_guard lock(memory_mutex_);
    memory_.push_back(std::make_unique<char[]>(static_cast<size_t>(bytes)));
    return {memory_.back().get(), bytes, uint8};
  }

  std::unique_ptr<Work> all_reduce(std::span<const Buffer> buffers,
                                   const CallOptions& options) override {
    share({"all_reduce", buffers, options.fingerprint}, options, [this](Calls all) {
      const SliceRange mine = slice_of(of_task(all, 0).buffers[0].count, rank_, size());
      add_part(all, mine.begin, mine.end - mine.begin);
      for (size_t rank = 0; rank < all.size(); ++rank) copy_part(all, mine, of_task(all, rank));
    });
    return done_work();
  }

  std::unique_ptr<Work> reduce_scatter(std::span<const Buffer> buffers,
                                       std::span<const int64_t> counts,
                                       const CallOptions& options) override {
    share({"reduce_scatter", buffers, options.fingerprint}, options, [&](Calls all) {
      const int64_t begin = offset_of(counts, rank_);
      const SliceRange mine{begin, begin + counts[rank_]};
      add_part(all, mine.begin, counts[rank_]);
      copy_part(all, mine, of_task(all, static_cast<size_t>(rank_)));
    });
    return done_work();
  }

  std::unique_ptr<Work> all_gather(std::span<const Buffer> buffers, std::span<const int64_t> counts,
                                   const CallOptions& options) override {
    share({"all_gather", buffers, options.fingerprint}, options, [&](Calls all) {
      const int64_t begin = offset_of(counts, rank_);
      for (size_t rank = 0; rank < all.size(); ++rank) {
        copy(buffers[0], of_task(all, rank), begin, counts[rank_]);
      }
    });
    return done_work();
  }

  std::unique_ptr<Work> broadcast(std::span<const Buffer> buffers, int root,
                                  const CallOptions& options) override {
    share({"broadcast", buffers, options.fingerprint}, options, [&](Calls all) {
      const Buffer& source = of_task(all, static_cast<size_t>(root)).buffers[0];
      copy(source, of_task(all, static_cast<size_t>(rank_)), 0, source.count);
    });
    return done_work();
  }

  void barrier(const CallOptions& options) override {
    share({"barrier", {}, options.fingerprint}, options, [](Calls) {});
  }

  void abort(const std::exception_ptr& reason) noexcept override {
    try {
      std::lock_guard lock(hub_->mutex);
      if (hub_->reason == nullptr) hub_->reason = given_up(task_name(rank_), reason);
    } catch (const std::bad_alloc&) {  // then they learn that, and not why
    }
    hub_->group.fail(rank_);
  }

 private:
  void share(Call call, const CallOptions& options, FunctionRef<void(Calls)> work) {
    guarded([&] {
      hub_->group.share(rank_, "a collective call", &call, check_same_calls, work, options.timeout);
    });
  }

  // Throws the reason of a failure in place of "another failed".
  void guarded(FunctionRef<void()> call) {
    try {
      call();
    } catch (const GroupBrokenError& error) {
      std::lock_guard lock(hub_->mutex);
      if (hub_->reason == nullptr) throw AbortedError(error.what());
      std::rethrow_exception(hub_->reason);
    }
  }

  // Adds up everybody's elements into this task's first buffer. Nobody else touches them.
  void add_part(Calls all, int64_t begin, int64_t count) {
    c10::SmallVector<const void*, 8> sources;
    for (size_t rank = 0; rank < all.size(); ++rank) {
      for (const Buffer& buffer : of_task(all, rank).buffers) sources.push_back(buffer.at(begin));
    }
    const Buffer& mine = of_task(all, static_cast<size_t>(rank_)).buffers[0];
    add_slices(mine.at(begin), {sources.data(), sources.size()}, count, mine.dtype);
  }

  void copy_part(Calls all, const SliceRange& range, const Call& target) {
    copy(of_task(all, static_cast<size_t>(rank_)).buffers[0], target, range.begin,
         range.end - range.begin);
  }

  static void copy(const Buffer& source, const Call& target, int64_t begin, int64_t count) {
    const auto bytes = static_cast<size_t>(source.at(begin + count) - source.at(begin));
    for (const Buffer& buffer : target.buffers) {
      if (buffer.data != source.data) std::memcpy(buffer.at(begin), source.at(begin), bytes);
    }
  }

  std::shared_ptr<Hub> hub_;
  int rank_;
  int64_t generation_;
  std::mutex memory_mutex_;
  std::vector<std::unique_ptr<char[]>> memory_;  // guarded by memory_mutex_
};

}  // namespace

std::vector<std::shared_ptr<Communicator>> make_in_process_communicators(int size,
                                                                         int64_t generation) {
  const auto hub = std::make_shared<Hub>(size);
  std::vector<std::shared_ptr<Communicator>> communicators;
  for (int rank = 0; rank < size; ++rank) {
    communicators.push_back(std::make_shared<InProcessCommunicator>(hub, rank, generation));
  }
  return communicators;
}

}  // namespace cohort::collective
