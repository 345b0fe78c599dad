#include "cohort/collective/network/transport_communicator.h"

#include <c10/util/complex.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/collective/add_in_tree.h"
#include "cohort/collective/call_fingerprint.h"
#include "cohort/collective/groups_of_task.h"
#include "cohort/collective/local_buffers.h"
#include "cohort/collective/slices.h"
#include "cohort/collective/sum_division.h"
#include "cohort/core/error.h"
#include "cohort/core/program/process.h"
#include "cohort/core/threads/bounded_wait.h"

namespace cohort::collective {
namespace {

using internal::str;

// Up to here every task sends all of its values to every other: one round instead of two.
constexpr int64_t kSmallBytes = int64_t{16} << 10;
// Up to here they travel with the call's fingerprint: one round instead of two of them.
constexpr size_t kTinyBytes = 64;

// What a task tells the others of its call. It has one size, whatever calls they make. The values
// are added up where they lie, so they are aligned as the largest number, a complex128, must be.
struct Word {
  alignas(std::max_align_t) char values[kTinyBytes] = {};
  uint64_t fingerprint = 0;
};
static_assert(alignof(Word) >= alignof(c10::complex<double>));
// The bytes of it that are sent: all but the padding.
constexpr size_t kWordBytes = offsetof(Word, fingerprint) + sizeof(uint64_t);

// Large values go in blocks, so that adding, sending and receiving overlap.
class Blocks {
 public:
  // values: of the buffer's dtype, that a message holds for each element of a block.
  Blocks(const SliceRange& range, const Buffer& buffer, size_t values)
      : range_(range),
        size_(static_cast<int64_t>(kMaxMessageBytes / c10::elementSize(buffer.dtype) / values)) {}

  int64_t count() const { return (range_.end - range_.begin + size_ - 1) / size_; }
  SliceRange operator[](int64_t index) const {
    const int64_t begin = range_.begin + index * size_;
    return {begin, std::min(range_.end, begin + size_)};
  }

 private:
  SliceRange range_;
  int64_t size_;
};

size_t bytes_of(const Buffer& buffer, const SliceRange& range) {
  return static_cast<size_t>(buffer.at(range.end) - buffer.at(range.begin));
}

class TransportCommunicator final : public Communicator {
 public:
  TransportCommunicator(const GroupMember& member, std::unique_ptr<Transport> transport)
      : rank_(member.rank),
        generation_(member.generation),
        tasks_(member.tasks),
        transport_(transport.release()),
        ranges_(tasks_.size()),
        sources_(tasks_.size()),
        words_(tasks_.size()),
        small_sum_(static_cast<size_t>(kSmallBytes)) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(tasks_.size()); }
  int64_t generation() const override { return generation_; }
  std::string task_name(int rank) const override {
    return to_string(tasks_[static_cast<size_t>(rank)]);
  }
  bool compares_fingerprints(int64_t bytes) const override { return is_tiny(bytes); }
  Buffer buffer(int64_t bytes) override {
    return {transport_->memory(static_cast<size_t>(bytes)), bytes, uint8};
  }

  std::unique_ptr<Work> all_reduce(std::span<const Buffer> buffers,
                                   const CallOptions& options) override {
    fold_buffers(buffers);
    const Buffer& mine = buffers[0];
    if (is_tiny(mine.bytes())) {
      tell("all_reduce", mine.data, mine.bytes(), options);
      add_told(mine, {0, mine.count});
      copy_to_others(buffers, 0, mine.count);
      return done_work();
    }
    const bool is_small = mine.bytes() <= kSmallBytes;
    guarded("all_reduce", options, [&] {
      if (is_small) return add_all(mine);
      for (int rank = 0; rank < size(); ++rank) range(rank) = slice_of(mine.count, rank, size());
      scatter(mine);
      expect_parts(mine);
      add_own_part(mine, true);
      take_parts(mine);
    });
    if (is_small) std::copy_n(small_sum_.data(), mine.bytes(), mine.at(0));
    copy_to_others(buffers, 0, mine.count);
    return done_work();
  }

  void all_reduce_parts(const Buffer& parts, const CallOptions& options) override {
    check_can_add(parts.dtype);
    const int64_t most_bytes = parts.bytes() * static_cast<int64_t>(division().most_parts());
    if (is_tiny(most_bytes)) {
      tell("all_reduce_parts", parts.data, parts.bytes() * num_parts(rank_), options);
      sources_.clear();
      for (int rank = 0; rank < size(); ++rank) use_parts(rank, word(rank).values, parts.bytes());
      return add_used(parts.data, parts.count, parts.dtype);
    }
    const bool is_small = most_bytes <= kSmallBytes;
    values_in_message_ = division().most_parts();
    guarded("all_reduce_parts", options, [&] {
      if (is_small) return add_all_parts(parts);
      for (int rank = 0; rank < size(); ++rank) range(rank) = slice_of(parts.count, rank, size());
      scatter_parts(parts);
      expect_parts(parts);
      add_own_slice_of_parts(parts);
      take_parts(parts);
    });
    values_in_message_ = 1;
    if (is_small) std::copy_n(small_sum_.data(), parts.bytes(), parts.at(0));
  }

  std::unique_ptr<Work> reduce_scatter(std::span<const Buffer> buffers,
                                       std::span<const int64_t> counts,
                                       const CallOptions& options) override {
    fold_buffers(buffers);
    set_ranges(counts);
    const Buffer& mine = buffers[0];
    if (is_tiny(mine.bytes())) {
      tell("reduce_scatter", mine.data, mine.bytes(), options);
      add_told(mine, range(rank_));
    } else {
      guarded("reduce_scatter", options, [&] {
        scatter(mine);
        add_own_part(mine, false);
      });
    }
    copy_to_others(buffers, range(rank_).begin, counts[static_cast<size_t>(rank_)]);
    return done_work();
  }

  std::unique_ptr<Work> all_gather(std::span<const Buffer> buffers, std::span<const int64_t> counts,
                                   const CallOptions& options) override {
    const Buffer& mine = buffers[0];
    set_ranges(counts);
    pass_parts("all_gather", mine, options);
    copy_to_others(buffers, 0, mine.count);
    return done_work();
  }

  std::unique_ptr<Work> broadcast(std::span<const Buffer> buffers, int root,
                                  const CallOptions& options) override {
    const Buffer& mine = buffers[0];
    for (int rank = 0; rank < size(); ++rank) range(rank) = {};
    range(root) = {0, mine.count};
    pass_parts("broadcast", mine, options);
    copy_to_others(buffers, 0, mine.count);
    return done_work();
  }

  void barrier(const CallOptions& options) override { tell("barrier", nullptr, 0, options); }

  void check_alive() override {
    home_.check("the communicator");
    transport_->check();
  }

  void abort(const std::exception_ptr& reason) noexcept override {
    if (!home_.is_here()) return;  // it would end the group of the parent
    try {
      transport_->fail(given_up(task_name(rank_), reason));
    } catch (const std::bad_alloc&) {
      transport_->fail(std::current_exception());
    }
  }

 private:
  SliceRange& range(int rank) { return ranges_[static_cast<size_t>(rank)]; }
  void set_ranges(std::span<const int64_t> counts) {
    int64_t begin = 0;
    for (int rank = 0; rank < size(); ++rank) {
      const int64_t end = begin + counts[static_cast<size_t>(rank)];
      range(rank) = {begin, end};
      begin = end;
    }
  }

  Blocks blocks_of(int rank, const Buffer& buffer) {
    return Blocks(range(rank), buffer, values_in_message_);
  }
  int64_t num_parts(int rank) const { return static_cast<int64_t>(division().num_parts(rank)); }

  // Each task begins with another, so that not all of them send to the first one first.
  template <class Fn>
  void for_others(Fn fn) {
    for (int i = 1; i < size(); ++i) fn((rank_ + i) % size());
  }

  // Ends the group if the function throws, so that tasks that wait for this one learn why it does
  // not come.
  template <class Fn>
  void guarded(const char* call, const CallOptions& options, Fn fn) {
    home_.check("the communicator");
    deadline_ = std::chrono::steady_clock::now() + internal::bounded_wait(options.timeout);
    call_ = call;
    options_ = &options;
    try {
      transport_->check();
      fn();
      if (const int slow = transport_->finish(deadline_); slow >= 0) throw_late(task_name(slow));
    } catch (...) {
      abort(std::current_exception());
      throw;
    }
  }

  static bool is_tiny(int64_t bytes) { return bytes <= static_cast<int64_t>(kTinyBytes); }
  Word& word(int rank) { return words_[static_cast<size_t>(rank)]; }

  // Makes one round: every task learns the fingerprints of all tasks, and the few values that they
  // send. If the calls differ, all have learnt it, and no buffer has changed.
  // Errors: those of a call, DifferentCalls.
  void tell(const char* call, const void* values, int64_t bytes, const CallOptions& options) {
    // The place of a call counts also where nobody has made a fingerprint.
    CallFingerprint fingerprint;
    fingerprint.add(std::string_view(call));
    fingerprint.add(options.fingerprint);
    Word& mine = word(rank_);
    mine = {.values = {}, .fingerprint = fingerprint.value()};
    if (bytes > 0) std::memcpy(mine.values, values, static_cast<size_t>(bytes));
    guarded(call, options, [&] {
      for_others([&](int other) {
        transport_->expect(other, &word(other), kWordBytes);
        transport_->send(other, &mine, kWordBytes);
      });
      for_others([&](int other) { receive(other); });
    });
    for (int other = 1; other < size(); ++other) {
      if (word(other).fingerprint == word(0).fingerprint) continue;
      throw DifferentCallsError(
          str(task_name(0), " and ", task_name(other), " make different calls"));
    }
  }

  // Elements of what was told.
  void add_told(const Buffer& mine, const SliceRange& part) {
    if (part.begin == part.end) return;
    const int64_t offset = mine.at(part.begin) - mine.at(0);
    sources_.resize(tasks_.size());
    for (int rank = 0; rank < size(); ++rank) {
      sources_[static_cast<size_t>(rank)] = word(rank).values + offset;
    }
    add_slices(mine.at(part.begin), sources_, part.end - part.begin, mine.dtype);
  }

  // Everybody's part to all.
  void pass_parts(const char* call, const Buffer& mine, const CallOptions& options) {
    int64_t largest = 0;
    for (const SliceRange& part : ranges_) {
      largest = std::max(largest, static_cast<int64_t>(bytes_of(mine, part)));
    }
    if (is_tiny(largest)) {
      const SliceRange& own = range(rank_);
      tell(call, mine.at(own.begin), static_cast<int64_t>(bytes_of(mine, own)), options);
      for_others([&](int other) {
        const size_t bytes = bytes_of(mine, range(other));
        if (bytes > 0) std::memcpy(mine.at(range(other).begin), word(other).values, bytes);
      });
      return;
    }
    guarded(call, options, [&] {
      expect_parts(mine);
      const Blocks blocks = blocks_of(rank_, mine);
      for (int64_t i = 0; i < blocks.count(); ++i) send_to_others(mine, blocks[i]);
      take_parts(mine);
    });
  }

  const void* receive(int from) {
    const void* const data = transport_->receive(from, deadline_);
    if (data == nullptr) throw_missing(from);
    return data;
  }

  // Names all that have not come, not only the first.
  [[noreturn]] void throw_missing(int first) {
    std::string late;
    for (int rank = 0; rank < size(); ++rank) {
      const bool is_late = rank == first || (rank != rank_ && transport_->is_late(rank));
      if (is_late) late += (late.empty() ? "" : ", ") + task_name(rank);
    }
    throw_late(late);
  }

  [[noreturn]] void throw_late(const std::string& whom) {
    const auto seconds = std::chrono::duration<double>(options_->timeout).count();
    throw DeadlineExceededError(str(call_, " '", options_->name, "' waited ", seconds, " s for ",
                                    whom, hint_of_other_groups()));
  }

  // Adds values that are so few that one round more would cost more than their bytes.
  void add_all(const Buffer& mine) {
    const SliceRange all{0, mine.count};
    if (mine.count == 0) return;
    for_others([&](int other) { transport_->expect(other, nullptr, bytes_of(mine, all)); });
    send_to_others(mine, all);
    add_received(mine, all, small_sum_.data());  // `mine` is still being sent
  }

  // Sends everybody its part.
  void scatter(const Buffer& mine) {
    const int64_t most_blocks = most_blocks_of_others(mine);
    const Blocks own = blocks_of(rank_, mine);
    for (int64_t i = 0; i < own.count(); ++i) {
      for_others([&](int other) { transport_->expect(other, nullptr, bytes_of(mine, own[i])); });
    }
    for (int64_t i = 0; i < most_blocks; ++i) {
      for_others([&](int other) {
        const Blocks blocks = blocks_of(other, mine);
        if (i >= blocks.count()) return;
        transport_->send(other, mine.at(blocks[i].begin), bytes_of(mine, blocks[i]));
      });
    }
  }

  // Adds up everybody's values of this task's part, and sends each block on once it is complete.
  void add_own_part(const Buffer& mine, bool send) {
    const Blocks own = blocks_of(rank_, mine);
    for (int64_t i = 0; i < own.count(); ++i) {
      add_received(mine, own[i], mine.at(own[i].begin));
      if (send) send_to_others(mine, own[i]);
    }
  }

  void add_received(const Buffer& mine, const SliceRange& block, void* out) {
    sources_.resize(tasks_.size());
    for_others([&](int other) { sources_[static_cast<size_t>(other)] = receive(other); });
    sources_[static_cast<size_t>(rank_)] = mine.at(block.begin);
    add_slices(out, sources_, block.end - block.begin, mine.dtype);
  }

  // The parts of all tasks, in the order of ranks, become sources of a sum: `stride` bytes apart.
  void use_parts(int rank, const void* first, int64_t stride) {
    for (int64_t part = 0; part < num_parts(rank); ++part) {
      sources_.push_back(static_cast<const char*>(first) + part * stride);
    }
  }
  void add_used(void* sum, int64_t count, DType dtype) const {
    add_in_tree({&sum, 1}, sources_, division().additions(), count, dtype);
  }

  // Parts that are so few that one round more would cost more than their bytes.
  void add_all_parts(const Buffer& mine) {
    if (mine.count == 0) return;
    const auto bytes_of_task = [&](int rank) {
      return static_cast<size_t>(mine.bytes() * num_parts(rank));
    };
    for_others([&](int other) { transport_->expect(other, nullptr, bytes_of_task(other)); });
    for_others([&](int other) { transport_->send(other, mine.data, bytes_of_task(rank_)); });
    received_.resize(tasks_.size());
    for_others([&](int other) { received_[static_cast<size_t>(other)] = receive(other); });
    received_[static_cast<size_t>(rank_)] = mine.data;
    sources_.clear();
    for (int rank = 0; rank < size(); ++rank) {
      use_parts(rank, received_[static_cast<size_t>(rank)], mine.bytes());
    }
    add_used(small_sum_.data(), mine.count, mine.dtype);
  }

  // Sends everybody its slice. A message has a block of each of the task's parts.
  void scatter_parts(const Buffer& mine) {
    const Blocks own = blocks_of(rank_, mine);
    for (int64_t i = 0; i < own.count(); ++i) {
      for_others([&](int other) {
        const size_t parts = division().num_parts(other);
        transport_->expect(other, nullptr, bytes_of(mine, own[i]) * parts);
      });
    }
    const size_t parts = division().num_parts(rank_);
    char* packed = parts > 1 ? packing_memory(static_cast<size_t>(mine.bytes()) * parts) : nullptr;
    const int64_t most_blocks = most_blocks_of_others(mine);
    for (int64_t i = 0; i < most_blocks; ++i) {
      for_others([&](int other) {
        const Blocks blocks = blocks_of(other, mine);
        if (i >= blocks.count()) return;
        const size_t bytes = bytes_of(mine, blocks[i]);
        if (parts == 1) return transport_->send(other, mine.at(blocks[i].begin), bytes);
        char* const message = packed;
        for (size_t part = 0; part < parts; ++part, packed += bytes) {
          const auto before = static_cast<int64_t>(part) * mine.count;
          std::memcpy(packed, mine.at(before + blocks[i].begin), bytes);
        }
        transport_->send(other, message, bytes * parts);
      });
    }
  }

  // Adds up the blocks of this task's slice, and sends each sum on once it is complete.
  void add_own_slice_of_parts(const Buffer& mine) {
    received_.resize(tasks_.size());
    const Blocks own = blocks_of(rank_, mine);
    for (int64_t i = 0; i < own.count(); ++i) {
      for_others([&](int other) { received_[static_cast<size_t>(other)] = receive(other); });
      sources_.clear();
      for (int rank = 0; rank < size(); ++rank) {
        if (rank == rank_) {
          use_parts(rank, mine.at(own[i].begin), mine.bytes());
        } else {
          const auto bytes = static_cast<int64_t>(bytes_of(mine, own[i]));
          use_parts(rank, received_[static_cast<size_t>(rank)], bytes);
        }
      }
      add_used(mine.at(own[i].begin), own[i].end - own[i].begin, mine.dtype);
      send_to_others(mine, own[i]);
    }
  }

  // Sent without a copy; until the next call.
  char* packing_memory(size_t bytes) {
    if (packing_bytes_ < bytes) {
      packing_bytes_ = bytes + bytes / 2;
      packing_ = transport_->memory(packing_bytes_);
    }
    return packing_;
  }

  void send_to_others(const Buffer& mine, const SliceRange& block) {
    for_others(
        [&](int other) { transport_->send(other, mine.at(block.begin), bytes_of(mine, block)); });
  }

  void expect_parts(const Buffer& mine) {
    for_others([&](int other) {
      const Blocks blocks = blocks_of(other, mine);
      for (int64_t i = 0; i < blocks.count(); ++i) {
        transport_->expect(other, mine.at(blocks[i].begin), bytes_of(mine, blocks[i]));
      }
    });
  }

  void take_parts(const Buffer& mine) {
    const int64_t most_blocks = most_blocks_of_others(mine);
    for (int64_t i = 0; i < most_blocks; ++i) {
      for_others([&](int other) {
        if (i < blocks_of(other, mine).count()) receive(other);
      });
    }
  }

  int64_t most_blocks_of_others(const Buffer& mine) {
    int64_t most = 0;
    for_others([&](int other) { most = std::max(most, blocks_of(other, mine).count()); });
    return most;
  }

  const int rank_;
  const int64_t generation_;
  const std::vector<TaskId> tasks_;
  const internal::HomeProcess home_;
  const internal::HomePtr<Transport> transport_;  // whose end takes leave of the other tasks
  std::vector<SliceRange> ranges_;                // each task's part in the current call
  std::vector<const void*> sources_;              // each task's values of a block
  std::vector<const void*> received_;             // each task's parts of a block
  size_t values_in_message_ = 1;                  // for each element of a block
  char* packing_ = nullptr;
  size_t packing_bytes_ = 0;
  std::vector<Word> words_;  // of each task, in the current call
  std::vector<char> small_sum_;
  Deadline deadline_;  // of the current call, as the next two
  const char* call_ = "";
  const CallOptions* options_ = nullptr;
};

}  // namespace

std::shared_ptr<Communicator> make_transport_communicator(const GroupMember& member,
                                                          std::unique_ptr<Transport> transport) {
  return std::make_shared<TransportCommunicator>(member, std::move(transport));
}

}  // namespace cohort::collective
