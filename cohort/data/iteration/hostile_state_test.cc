// States that nobody has saved: every number of a pipeline's state in turn is one that cannot be.
// What comes of it is an error of Cohort's, or elements; under sanitizers, no sum that overflows
// and no memory that is not there.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/core/bytes/varint.h"
#include "cohort/data/test_util.h"

namespace cohort::data {
namespace {

// A serialized state (state.cc) of which one number can be replaced.
class NumbersOfState {
 public:
  explicit NumbersOfState(const std::string& serialized)
      : head_(serialized.substr(0, kHeadBytes)),
        body_(serialized.substr(kHeadBytes, serialized.size() - kHeadBytes - kChecksumBytes)) {
    rewrite(std::nullopt, 0);
  }
  size_t count() const { return names_.size(); }
  const std::string& name(size_t i) const { return names_[i]; }

  IteratorState with(size_t i, int64_t value) {
    std::string bytes = head_ + rewrite(i, value);
    uint64_t hash = 0xcbf29ce484222325u;
    for (const unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
    for (size_t k = 0; k < kChecksumBytes; ++k, hash >>= 8) bytes += static_cast<char>(hash & 0xff);
    return IteratorState::parse(bytes);
  }

 private:
  static constexpr size_t kHeadBytes = 5;
  static constexpr size_t kChecksumBytes = 8;

  std::string rewrite(std::optional<size_t> which, int64_t value) {
    names_.clear();
    std::string_view left = body_;
    std::string out;
    copy_node(left, out, which, value);
    return out;
  }
  void copy_node(std::string_view& left, std::string& out, std::optional<size_t> which,
                 int64_t value) {
    const uint64_t entries = internal::take_varint(left);
    internal::append_varint(out, entries);
    for (uint64_t i = 0; i < entries; ++i) {
      std::string name = copy_bytes(left, out);
      const char kind = left.front();
      left.remove_prefix(1);
      out += kind;
      if (kind == 0) {
        const int64_t saved = internal::take_signed_varint(left);
        internal::append_signed_varint(out, which == names_.size() ? value : saved);
        names_.push_back(std::move(name));
      } else if (kind == 1) {
        copy_bytes(left, out);
      } else {
        copy_node(left, out, which, value);
      }
    }
  }
  static std::string copy_bytes(std::string_view& left, std::string& out) {
    const uint64_t length = internal::take_varint(left);
    std::string bytes(left.substr(0, length));
    left.remove_prefix(length);
    internal::append_varint(out, length);
    out += bytes;
    return bytes;
  }

  const std::string head_;
  const std::string body_;
  std::vector<std::string> names_;  // of the numbers, in their order
};

std::vector<std::pair<const char*, Dataset>> pipelines() {
  const auto same = [](int64_t x) { return x; };
  const Dataset range = Dataset::range(300);
  const Dataset ordered = sequential(range);
  const auto counter = [i = int64_t{0}]() mutable {
    return i < 300 ? std::optional(i++) : std::nullopt;
  };
  return {
      {"range", range},
      {"generator", Dataset::from_generator(counter)},
      {"random", Dataset::random(1).take(300)},
      {"filter", ordered},
      {"map", ordered.map(same)},
      {"parallel map", ordered.map(same, {.num_parallel_calls = 2})},
      {"unordered map", ordered.map(same, {.num_parallel_calls = 3, .deterministic = false})},
      {"parallel map of blocks", range.map([](const Tensor& x) { return x + 1; },
                                           {.num_parallel_calls = 2, .vectorized = true})},
      {"permutation", range.shuffle(300, {.seed = 1})},
      {"buffer of positions", range.shuffle(50, {.seed = 1})},
      {"buffer of elements", ordered.shuffle(50, {.seed = 1})},
      {"interleave", Dataset::range(30).interleave([](const Tensor&) { return Dataset::range(10); },
                                                   {.cycle_length = 3, .block_length = 2})},
      {"cache", ordered.cache()},
      {"batch", ordered.batch(7)},
      {"unbatch", ordered.batch(7).unbatch()},
      {"repeat", range.shuffle(300, {.seed = 1}).repeat(3)},
      {"repeat for ever", ordered.repeat()},
      {"shard", ordered.shard(3, 1)},
      {"take and skip", ordered.skip(3).take(200)},
      {"zip", Dataset::zip(std::vector<Dataset>{ordered, range})},
      {"concatenate", ordered.concatenate(range)},
      {"enumerate", ordered.enumerate()},
      {"prefetch", ordered.prefetch(2)},
  };
}

TEST(HostileState, AnyNumberOfAnyStage) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  for (const auto& [name, dataset] : pipelines()) {
    SCOPED_TRACE(name);
    for (const int read : {0, 5, 120}) {
      auto iterator = dataset.iterator();
      for (int i = 0; i < read; ++i) iterator.next();
      NumbersOfState state(iterator.state().serialize());
      for (size_t i = 0; i < state.count(); ++i) {
        for (const int64_t value : {kMost, kMost - 1, kLeast, int64_t{-1}}) {
          SCOPED_TRACE(state.name(i) + " = " + std::to_string(value));
          auto restored = dataset.iterator();
          try {
            restored.restore(state.with(i, value));
            for (int k = 0; k < 20 && restored.next(); ++k) {
            }
          } catch (const Error&) {
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace cohort::data
