#include "cohort/collective/shared_memory/shared_memory_communicator.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "cohort/collective/add_in_tree.h"
#include "cohort/collective/gathered_bytes.h"
#include "cohort/collective/local_buffers.h"
#include "cohort/collective/shared_memory/connection.h"
#include "cohort/collective/shared_memory/shared_barrier.h"
#include "cohort/collective/shared_memory/shared_parts.h"
#include "cohort/collective/slices.h"
#include "cohort/collective/sum_division.h"
#include "cohort/core/function_ref.h"
#include "cohort/core/program/process.h"

namespace cohort::collective {
namespace {

using internal::str;
using shared_memory::Call;
using shared_memory::Connection;
using shared_memory::kPieceBytes;
using shared_memory::Operation;
using shared_memory::SharedBarrier;
using shared_memory::TaskSlot;
using shared_memory::Waiting;

// Up to here values are copied even where they lie in shared memory: a second barrier costs more.
constexpr int64_t kSmallBytes = 16 << 10;
uint64_t fingerprint_of(std::span<const int64_t> counts) {
  uint64_t hash = 14695981039346656037ull;  // FNV-1a, by numbers
  for (const int64_t count : counts)
    hash = (hash ^ static_cast<uint64_t>(count)) * 1099511628211ull;
  return hash;
}

void copy(void* to, const void* from, int64_t bytes) {
  if (to != from && bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

// Every call begins with a barrier, at which each task's slot says which call it is. Then
// - values that lie in shared memory on all tasks are read and written where they are, and a second
//   barrier ends the call;
// - others are copied to the tasks' stages piece by piece, with a barrier after each. A stage has
//   two places in turn, so that nobody waits until all have read a piece. Of a small call the first
//   piece is there at the first barrier, which is the only one.
class SharedMemoryCommunicator final : public Communicator {
 public:
  SharedMemoryCommunicator(const GroupMember& member, Connection connection)
      : member_(member),
        connection_(std::move(connection)),
        slots_(reinterpret_cast<TaskSlot*>(common(shared_memory::Layout::slot(0)))),
        parts_(connection_.file, connection_.layout, member.rank),
        barrier_({reinterpret_cast<shared_memory::Control*>(common(0)), slots_}, member,
                 std::move(connection_.lifelines),
                 [this](int of_rank) { return task_name(of_rank); }) {
    member_.store = nullptr;  // it may end before
    member_.check = nullptr;
  }
  ~SharedMemoryCommunicator() override {
    if (home_.is_here()) barrier_.leave();
  }

  int rank() const override { return member_.rank; }
  int size() const override { return member_.size(); }
  int64_t generation() const override { return member_.generation; }
  std::string task_name(int of_rank) const override { return to_string(member_.task(of_rank)); }
  bool compares_fingerprints(int64_t /*bytes*/) const override { return true; }

  Buffer buffer(int64_t bytes) override {
    home_.check("the communicator");
    return {parts_.take(bytes), bytes, uint8};
  }

  std::unique_ptr<Work> all_reduce(std::span<const Buffer> buffers,
                                   const CallOptions& options) override {
    fold_buffers(buffers);
    const Buffer& mine = buffers[0];
    const int64_t in_piece = kPieceBytes / element_bytes(mine);
    const auto fill = [&](int64_t i) { copy_piece(stage(rank()), mine, i * in_piece, in_piece); };
    const auto take = [&](int64_t i) { add_piece(mine, i * in_piece, in_piece, 0); };
    const auto in_place = [&] { add_slice_for_all(mine); };
    run({Operation::kAllReduce}, mine, options, {pieces_of(mine.count, in_piece), fill, take},
        in_place);
    copy_to_others(buffers, 0, mine.count);
    return done_work();
  }

  void all_reduce_parts(const Buffer& parts, const CallOptions& options) override {
    check_can_add(parts.dtype);
    // A stage has a lane for each of the task's parts.
    const int64_t lane = kPieceBytes / values_of(Operation::kAllReduceParts, kMost) / 64 * 64;
    const int64_t in_piece = lane / element_bytes(parts);
    const int64_t own_parts = values_of(Operation::kAllReduceParts, rank());
    const auto fill = [&](int64_t i) {
      for (int64_t part = 0; part < own_parts; ++part) {
        copy_piece(stage(rank()) + part * lane, value_at(parts, part), i * in_piece, in_piece);
      }
    };
    const auto take = [&](int64_t i) { add_piece_of_parts(parts, i * in_piece, in_piece, lane); };
    const auto in_place = [&] { add_slice_of_parts(parts); };
    run({Operation::kAllReduceParts}, parts, options,
        {pieces_of(parts.count, in_piece), fill, take}, in_place);
  }

  std::unique_ptr<Work> reduce_scatter(std::span<const Buffer> buffers,
                                       std::span<const int64_t> counts,
                                       const CallOptions& options) override {
    fold_buffers(buffers);
    const Buffer& mine = buffers[0];
    // A stage has a lane for each task's part.
    const int64_t lane = kPieceBytes / size() / 64 * 64;
    const int64_t in_piece = lane / element_bytes(mine);
    const int64_t own_part = offset_of(counts, rank());
    const int64_t own_count = counts[at(rank())];
    const auto fill = [&](int64_t i) {
      for_each_other_part(counts, [&](int to, int64_t part) {
        const int64_t count = std::min(in_piece, counts[at(to)] - i * in_piece);
        copy_piece(stage(rank()) + to * lane, mine, part + i * in_piece, count);
      });
    };
    const auto take = [&](int64_t i) {
      const int64_t count = std::min(in_piece, own_count - i * in_piece);
      add_piece(mine, own_part + i * in_piece, count, rank() * lane);
    };
    const auto in_place = [&] { add_values(mine.at(own_part), own_part, own_count, mine.dtype); };
    run({.operation = Operation::kReduceScatter, .counts = fingerprint_of(counts)}, mine, options,
        {pieces_of(largest(counts), in_piece), fill, take}, in_place);
    copy_to_others(buffers, own_part, own_count);
    return done_work();
  }

  std::unique_ptr<Work> all_gather(std::span<const Buffer> buffers, std::span<const int64_t> counts,
                                   const CallOptions& options) override {
    const Buffer& mine = buffers[0];
    const int64_t in_piece = kPieceBytes / element_bytes(mine);
    const auto fill = [&](int64_t i) {
      const int64_t count = std::min(in_piece, counts[at(rank())] - i * in_piece);
      copy_piece(stage(rank()), mine, offset_of(counts, rank()) + i * in_piece, count);
    };
    const auto take = [&](int64_t i) {
      for_each_other_part(counts, [&](int from, int64_t part) {
        const int64_t count = std::min(in_piece, counts[at(from)] - i * in_piece);
        if (count > 0) copy(mine.at(part + i * in_piece), stage(from), count * element_bytes(mine));
      });
    };
    const auto in_place = [&] {
      for_each_other_part(counts, [&](int from, int64_t part) {
        const char* values = values_[at(from)] + part * element_bytes(mine);
        copy(mine.at(part), values, counts[at(from)] * element_bytes(mine));
      });
    };
    run({.operation = Operation::kAllGather, .counts = fingerprint_of(counts)}, mine, options,
        {pieces_of(largest(counts), in_piece), fill, take}, in_place);
    copy_to_others(buffers, 0, mine.count);
    return done_work();
  }

  std::unique_ptr<Work> broadcast(std::span<const Buffer> buffers, int root,
                                  const CallOptions& options) override {
    const Buffer& mine = buffers[0];
    const int64_t in_piece = kPieceBytes / element_bytes(mine);
    const auto fill = [&](int64_t i) {
      if (rank() == root) copy_piece(stage(root), mine, i * in_piece, in_piece);
    };
    const auto take = [&](int64_t i) {
      const int64_t first = i * in_piece;
      const int64_t count = std::min(in_piece, mine.count - first);
      if (rank() != root) copy(mine.at(first), stage(root), count * element_bytes(mine));
    };
    const auto in_place = [&] { copy(mine.data, values_[at(root)], mine.bytes()); };
    run({.operation = Operation::kBroadcast, .root = root}, mine, options,
        {pieces_of(mine.count, in_piece), fill, take}, in_place);
    copy_to_others(buffers, 0, mine.count);
    return done_work();
  }

  void barrier(const CallOptions& options) override {
    const auto nothing = [](int64_t) {};
    run({Operation::kBarrier}, {}, options, {0, nothing, nothing}, [] {});
  }

  // Needs one barrier: the bytes lie in shared memory and are read there. At the barrier of the
  // next such call all have read them.
  void gather_bytes(std::span<const char> mine, GatheredBytes& all,
                    const CallOptions& options) override {
    home_.check("the communicator");
    const Waiting waiting(options.name, options.timeout);
    const auto bytes = static_cast<int64_t>(mine.size());
    Call call{.operation = Operation::kGatherBytes,
              .dtype = static_cast<int32_t>(uint8),
              .count = bytes,
              .fingerprint = options.fingerprint};
    Buffer shared;
    guarded([&] { shared = in_shared_memory(mine, call); });
    slots_[rank()].calls[calls_ & 1] = call;
    barrier_.meet(waiting);
    check_agreement();
    guarded([&] {
      all.parts().resize(at(size()));
      for (int other = 0; other < size(); ++other) {
        const Call theirs = slots_[other].calls[calls_ & 1];
        const char* const values = other == rank() ? shared.at(0) : parts_.values_of(other, theirs);
        all.parts()[at(other)] = {values, static_cast<size_t>(theirs.count)};
      }
    });
    ++calls_;
  }

  void check_alive() override {
    home_.check("the communicator");
    barrier_.check_alive();
  }

  void abort(const std::exception_ptr& reason) noexcept override {
    if (!home_.is_here()) return;  // the memory is that of the parent's group
    try {
      barrier_.fail(given_up(task_name(rank()), reason));
    } catch (const std::bad_alloc&) {
      barrier_.fail(std::current_exception());
    }
  }

 private:
  // The values of a call that pass through the stages: fill(i) copies this task's piece i to its
  // stage, take(i) uses the pieces that are there.
  struct Pieces {
    int64_t count = 0;
    FunctionRef<void(int64_t)> fill;
    FunctionRef<void(int64_t)> take;
  };

  static constexpr int kMost = -1;  // in place of a rank: of any task

  // How many values of its buffer's size a task brings to a call.
  int64_t values_of(Operation operation, int of_rank) const {
    if (operation != Operation::kAllReduceParts) return 1;
    return static_cast<int64_t>(of_rank == kMost ? division().most_parts()
                                                 : division().num_parts(of_rank));
  }
  static Buffer value_at(const Buffer& first, int64_t index) {
    return {first.at(index * first.count), first.count, first.dtype};
  }

  static size_t at(int rank) { return static_cast<size_t>(rank); }
  static int64_t element_bytes(const Buffer& buffer) {
    return static_cast<int64_t>(c10::elementSize(buffer.dtype));
  }
  static int64_t pieces_of(int64_t count, int64_t in_piece) {
    return (count + in_piece - 1) / in_piece;
  }
  static int64_t largest(std::span<const int64_t> counts) {
    return *std::max_element(counts.begin(), counts.end());
  }
  char* common(int64_t begin) const { return connection_.common.data() + begin; }
  char* stage(int of_rank) const {
    return common(connection_.layout.stage(of_rank) + (pieces_ & 1) * kPieceBytes);
  }

  void run(Call call, const Buffer& mine, const CallOptions& options, const Pieces& pieces,
           FunctionRef<void()> in_place) {
    home_.check("the communicator");
    const Waiting waiting(options.name, options.timeout);
    call.dtype = static_cast<int32_t>(mine.dtype);
    call.count = mine.count;
    call.fingerprint = options.fingerprint;
    const bool is_small = mine.bytes() * values_of(call.operation, kMost) <= kSmallBytes;
    if (!is_small) {
      Buffer brought = mine;
      brought.count *= values_of(call.operation, rank());
      parts_.locate(brought, call);
    }
    slots_[rank()].calls[calls_ & 1] = call;
    if (is_small && pieces.count > 0) pieces.fill(0);
    barrier_.meet(waiting);
    check_agreement();
    guarded([&] {
      if (!is_small && find_values(call)) {
        in_place();
        barrier_.meet(waiting);
      } else {
        pass(pieces, is_small, waiting);
      }
    });
    ++calls_;
  }

  void pass(const Pieces& pieces, bool first_is_there, const Waiting& waiting) {
    for (int64_t i = 0; i < pieces.count; ++i) {
      if (i > 0 || !first_is_there) {
        pieces.fill(i);
        barrier_.meet(waiting);
      }
      pieces.take(i);
      ++pieces_;
    }
  }

  // The bytes where they are, if that is shared memory. Otherwise a copy in one of two places that
  // calls use in turn: while one is written, others still read the one of the call before.
  Buffer in_shared_memory(std::span<const char> bytes, Call& call) {
    Buffer buffer{const_cast<char*>(bytes.data()), static_cast<int64_t>(bytes.size()), uint8};
    parts_.locate(buffer, call);
    if (call.part_begin >= 0) return buffer;
    Buffer& copies = copies_[gathered_++ & 1];
    if (copies.data == nullptr || copies.count < buffer.count) {
      const int64_t size = buffer.count + buffer.count / 2;
      copies = {parts_.take(size), size, uint8};
    }
    copy(copies.data, buffer.data, buffer.count);
    buffer.data = copies.data;
    parts_.locate(buffer, call);
    return buffer;
  }

  // Other tasks read and write this task's memory, or wait for it, so an error here fails the
  // group.
  void guarded(FunctionRef<void()> work) {
    try {
      work();
    } catch (...) {
      abort(std::current_exception());
      throw;
    }
  }

  // All tasks see the same calls and throw the same; then the group can go on.
  void check_agreement() {
    const Call& first = slots_[0].calls[calls_ & 1];
    for (int other = 1; other < size(); ++other) {
      const Call& second = slots_[other].calls[calls_ & 1];
      if (first.fingerprint != second.fingerprint) {
        ++calls_;
        throw DifferentCallsError(
            str(task_name(0), " and ", task_name(other), " make different calls"));
      }
      const bool counts_agree =
          first.count == second.count || first.operation == Operation::kGatherBytes;
      if (first.operation == second.operation && counts_agree && first.dtype == second.dtype &&
          first.root == second.root && first.counts == second.counts) {
        continue;
      }
      const std::string text = str(task_name(0), " calls ", describe(first), ", ", task_name(other),
                                   " ", describe(second), "; every task must make the same calls");
      ++calls_;
      throw InvalidArgumentError(text);
    }
  }

  static std::string describe(const Call& call) {
    static constexpr const char* kNames[] = {"barrier",         "all_reduce", "reduce_scatter",
                                             "all_gather",      "broadcast",  "gather_bytes",
                                             "all_reduce_parts"};
    const auto operation = static_cast<size_t>(call.operation);
    const char* name = operation < std::size(kNames) ? kNames[operation] : "something";
    return str(name, " of ", call.count, ' ', internal::dtype_name(static_cast<DType>(call.dtype)),
               " (root ", call.root, ", parts ", call.counts, ")");
  }

  // Fills values_ where the values of all tasks that are read lie in shared memory.
  bool find_values(const Call& mine) {
    const bool reads_root_only = mine.operation == Operation::kBroadcast;
    for (int other = 0; other < size(); ++other) {
      const bool is_read = !reads_root_only || other == mine.root;
      if (is_read && slots_[other].calls[calls_ & 1].part_begin < 0) return false;
    }
    values_.assign(at(size()), nullptr);
    for (int other = 0; other < size(); ++other) {
      Call call = slots_[other].calls[calls_ & 1];
      call.count *= values_of(call.operation, other);
      if (call.part_begin >= 0) values_[at(other)] = parts_.values_of(other, call);
    }
    return true;
  }

  void copy_piece(char* to, const Buffer& mine, int64_t first, int64_t count) const {
    count = std::min(count, mine.count - first);
    if (count > 0) copy(to, mine.at(first), count * element_bytes(mine));
  }

  // This task's values, and what the others' stages hold from `offset` on.
  void add_piece(const Buffer& mine, int64_t first, int64_t count, int64_t offset) {
    count = std::min(count, mine.count - first);
    if (count <= 0) return;
    sources_.clear();
    for (int other = 0; other < size(); ++other) {
      sources_.push_back(other == rank() ? mine.at(first) : stage(other) + offset);
    }
    add_slices(mine.at(first), sources_, count, mine.dtype);
  }

  // Elements of all tasks' values_.
  void add_values(char* out, int64_t first, int64_t count, DType dtype) {
    if (count <= 0) return;
    sources_.clear();
    const int64_t offset = first * static_cast<int64_t>(c10::elementSize(dtype));
    for (const char* values : values_) sources_.push_back(values + offset);
    add_slices(out, sources_, count, dtype);
  }

  // Nobody else touches this slice.
  void add_slice_for_all(const Buffer& mine) {
    const SliceRange slice = slice_of(mine.count, rank(), size());
    targets_.clear();
    for (char* values : values_) targets_.push_back(values + slice.begin * element_bytes(mine));
    add_slices_in_place(targets_, slice.end - slice.begin, mine.dtype);
  }

  // Elements of this task's parts, and of those that the others' stages hold, a lane for each.
  void add_piece_of_parts(const Buffer& mine, int64_t first, int64_t count, int64_t lane) {
    count = std::min(count, mine.count - first);
    if (count <= 0) return;
    sources_.clear();
    for_each_value([&](int of_rank, int64_t part) {
      sources_.push_back(of_rank == rank() ? value_at(mine, part).at(first)
                                           : stage(of_rank) + part * lane);
    });
    void* const sum = mine.at(first);
    add_in_tree({&sum, 1}, sources_, division().additions(), count, mine.dtype);
  }

  // Nobody else touches this slice of any task's parts.
  void add_slice_of_parts(const Buffer& mine) {
    const SliceRange slice = slice_of(mine.count, rank(), size());
    const int64_t offset = slice.begin * element_bytes(mine);
    sources_.clear();
    for_each_value([&](int of_rank, int64_t part) {
      sources_.push_back(values_[at(of_rank)] + part * mine.bytes() + offset);
    });
    targets_.clear();
    for (char* values : values_) targets_.push_back(values + offset);
    add_in_tree(targets_, sources_, division().additions(), slice.end - slice.begin, mine.dtype);
  }

  void for_each_value(FunctionRef<void(int of_rank, int64_t part)> use) const {
    for (int of_rank = 0; of_rank < size(); ++of_rank) {
      const int64_t parts = values_of(Operation::kAllReduceParts, of_rank);
      for (int64_t part = 0; part < parts; ++part) use(of_rank, part);
    }
  }

  void for_each_other_part(std::span<const int64_t> counts,
                           FunctionRef<void(int from, int64_t part)> use) const {
    int64_t part = 0;
    for (int from = 0; from < size(); ++from) {
      if (from != rank()) use(from, part);
      part += counts[at(from)];
    }
  }

  GroupMember member_;
  internal::HomeProcess home_;
  Connection connection_;
  TaskSlot* slots_;
  shared_memory::SharedParts parts_;
  SharedBarrier barrier_;
  uint64_t calls_ = 0;
  int64_t pieces_ = 0;     // that have passed through the stages
  uint64_t gathered_ = 0;  // calls whose bytes were copied
  Buffer copies_[2];
  // Addresses of the call in progress. The vectors are kept for their memory.
  std::vector<char*> values_;
  std::vector<const void*> sources_;
  std::vector<void*> targets_;
};

}  // namespace

std::shared_ptr<Communicator> make_shared_memory_communicator(const GroupMember& member) {
  return std::make_shared<SharedMemoryCommunicator>(member, shared_memory::connect(member));
}

}  // namespace cohort::collective
