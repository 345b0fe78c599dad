// What lies where in the memory that the tasks of a group share.
//
//   Control | a TaskSlot for each task | a stage for each task | a region for each task
//
// The first three are mapped by all from the beginning. A region is where a task's own memory
// (Communicator::buffer) grows; the others map parts of it when a call first uses them.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace cohort::collective::shared_memory {

// Every part of the file that is mapped on its own begins at a multiple of this: the largest page
// that Linux has, on ARM64; x86-64 has 4 KiB.
inline constexpr int64_t kPageBytes = 64 << 10;
inline constexpr int kMostTasks = 250;
// The size of the pieces in which values outside of shared memory pass through the stages: large
// enough that a barrier costs little beside a piece, small enough for the second-level cache.
inline constexpr int64_t kPieceBytes = 256 << 10;
// Address space of the file and not memory: pages are there once they are reserved.
inline constexpr int64_t kRegionBytes = int64_t{1} << 40;
inline constexpr int64_t kMostErrorBytes = 8 << 10;

// Each field that tasks write at the same time has a cache line of its own.
struct Control {
  // Twice the number of completed barriers, plus 1 once the group has failed. This one word decides
  // for all tasks whether a barrier was completed, and all sleep on it.
  alignas(64) std::atomic<uint32_t> epoch;
  alignas(64) std::atomic<uint32_t> arrived;  // at the current barrier
  alignas(64) std::atomic<uint32_t> sleepers;
  // Why the group has failed, as internal::rpc::encode_error writes it.
  alignas(64) std::atomic<uint32_t> error_written;
  uint32_t error_bytes;
  char error[kMostErrorBytes];
};

enum class Operation : uint32_t {
  kBarrier,
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kGatherBytes,
  kAllReduceParts
};

// What a task tells about its call. Tasks read and write each other's memory, so calls with other
// sizes must not pass.
struct Call {
  Operation operation = Operation::kBarrier;
  int32_t dtype = 0;
  int64_t count = 0;  // the same on all tasks, but for kGatherBytes; of kAllReduceParts, of a part
  int32_t root = 0;
  uint64_t counts = 0;       // their fingerprint
  uint64_t fingerprint = 0;  // CallOptions::fingerprint
  // The place of the values in the file: the part that buffer() gave, and their place in it. -1:
  // they lie elsewhere.
  int64_t part_begin = -1;
  int64_t part_bytes = 0;
  int64_t offset = 0;
};

struct TaskSlot {
  alignas(64) std::atomic<uint32_t> barriers;  // to which the task has come
  std::atomic<uint32_t> left;                  // 1: it has destroyed its communicator
  cpu_set_t cores;                             // that the task may use; before the first barrier
  // One for odd and one for even calls: a task may begin a call while others still look at the one
  // before.
  alignas(64) Call calls[2];
};

struct Layout {
  int64_t num_tasks = 0;
  int64_t region_bytes = kRegionBytes;

  static constexpr int64_t pages(int64_t bytes) {
    return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  }
  static constexpr int64_t slot(int64_t rank) {
    return pages(sizeof(Control)) + rank * static_cast<int64_t>(sizeof(TaskSlot));
  }
  // A task has two pieces: it may fill one while others still read the other.
  int64_t stage(int64_t rank) const { return pages(slot(num_tasks)) + rank * 2 * kPieceBytes; }
  // The bytes that all tasks map from the beginning.
  int64_t common_bytes() const { return stage(num_tasks); }
  int64_t region(int64_t rank) const { return common_bytes() + rank * region_bytes; }
  int64_t file_bytes() const { return region(num_tasks); }
};

}  // namespace cohort::collective::shared_memory
