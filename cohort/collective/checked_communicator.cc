#include "cohort/collective/checked_communicator.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

namespace cohort::collective {
namespace {

using internal::str;

// What a task says of the call that it is about to make.
struct Announcement {
  int64_t generation = 0;
  uint64_t sequence = 0;
  uint64_t fingerprint = 0;
  char text[232] = {};  // cut where it is longer; the fingerprint is of all of it
};

uint64_t fingerprint_of(std::string_view text) {
  uint64_t hash = 14695981039346656037ull;  // FNV-1a, 64 bits
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

class CheckedCommunicator final : public Communicator {
 public:
  explicit CheckedCommunicator(std::shared_ptr<Communicator> backend)
      : backend_(std::move(backend)),
        announcements_(static_cast<size_t>(backend_->size())),
        bytes_each_(announcements_.size(), sizeof(Announcement)) {}

  int rank() const override { return backend_->rank(); }
  int size() const override { return backend_->size(); }
  int64_t generation() const override { return backend_->generation(); }
  std::string task_name(int rank) const override { return backend_->task_name(rank); }
  Buffer buffer(int64_t bytes) override { return backend_->buffer(bytes); }

  std::unique_ptr<Work> all_reduce(std::span<const Buffer> buffers,
                                   const CallOptions& options) override {
    agree("all_reduce", buffers, {}, options);
    return backend_->all_reduce(buffers, options);
  }
  std::unique_ptr<Work> reduce_scatter(std::span<const Buffer> buffers,
                                       std::span<const int64_t> counts,
                                       const CallOptions& options) override {
    check_counts("reduce_scatter", buffers, counts);
    agree("reduce_scatter", buffers, list(counts), options);
    return backend_->reduce_scatter(buffers, counts, options);
  }
  std::unique_ptr<Work> all_gather(std::span<const Buffer> buffers, std::span<const int64_t> counts,
                                   const CallOptions& options) override {
    check_counts("all_gather", buffers, counts);
    agree("all_gather", buffers, list(counts), options);
    return backend_->all_gather(buffers, counts, options);
  }
  std::unique_ptr<Work> broadcast(std::span<const Buffer> buffers, int root,
                                  const CallOptions& options) override {
    agree("broadcast", buffers, str(" from ", task_name(root)), options);
    return backend_->broadcast(buffers, root, options);
  }
  void barrier(const CallOptions& options) override {
    agree("barrier", {}, {}, options);  // which is one
  }
  void abort(const std::exception_ptr& reason) noexcept override { backend_->abort(reason); }

 private:
  static std::string list(std::span<const int64_t> counts) {
    std::string text = " in parts of";
    for (const int64_t count : counts) text += str(' ', count);
    return text;
  }

  void check_counts(const char* call, std::span<const Buffer> buffers,
                    std::span<const int64_t> counts) const {
    const int64_t total = std::accumulate(counts.begin(), counts.end(), int64_t{0});
    if (static_cast<int>(counts.size()) == size() && total == buffers[0].count) return;
    throw InvalidArgumentError(str(call, " got ", counts.size(), " counts that add up to ", total,
                                   "; it takes one for each of ", size(),
                                   " tasks, which add up to the buffer's ", buffers[0].count));
  }

  void agree(const char* call, std::span<const Buffer> buffers, std::string_view what,
             const CallOptions& options) {
    if (size() == 1) return;
    std::string text = str(call, " '", options.name, "'", what);
    if (!buffers.empty()) {
      text += str(" of ", buffers[0].count, ' ', internal::dtype_name(buffers[0].dtype));
    }
    if (!options.signature.empty()) text += str(", ", options.signature);

    Announcement& mine = announcements_[static_cast<size_t>(rank())];
    mine = {generation(), sequence_++, fingerprint_of(text), {}};
    std::memcpy(mine.text, text.data(), std::min(text.size(), sizeof mine.text - 1));
    const auto bytes = static_cast<int64_t>(announcements_.size() * sizeof(Announcement));
    collective::all_gather(*backend_, {announcements_.data(), bytes, uint8}, bytes_each_, options);
    for (int other = 0; other < size(); ++other) compare(other);
  }

  // Every task compares with the first, so that all of them throw the same.
  void compare(int other) const {
    const Announcement& first = announcements_.front();
    const Announcement& second = announcements_[static_cast<size_t>(other)];
    if (first.generation != second.generation) {
      throw FailedPreconditionError(str("task 0 is in generation ", first.generation,
                                        " of the group, task ", other, " in ", second.generation,
                                        "; form the group again"));
    }
    if (first.sequence == second.sequence && first.fingerprint == second.fingerprint) return;
    throw FailedPreconditionError(str("tasks make different collective calls: task 0 call ",
                                      first.sequence, ", ", first.text, "; task ", other, " call ",
                                      second.sequence, ", ", second.text,
                                      "; every task must make the same calls in one order"));
  }

  std::shared_ptr<Communicator> backend_;
  std::vector<Announcement> announcements_;  // one a task
  std::vector<int64_t> bytes_each_;
  uint64_t sequence_ = 0;
};

}  // namespace

std::shared_ptr<Communicator> checked(std::shared_ptr<Communicator> backend) {
  return std::make_shared<CheckedCommunicator>(std::move(backend));
}

}  // namespace cohort::collective
