// The part of building a vocabulary's index that is work: every token gets a slot of its own, in
// bounded memory, by several threads.
//
// The text is read once for each group of parts of the perfect hash whose keys fit into memory.
// Each reading sorts the group's keys into their parts, whose pilots are then found one by one.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/function_ref.h"
#include "cohort/ops/vocabulary/index_layout.h"
#include "cohort/ops/vocabulary/perfect_hash.h"
#include "cohort/ops/vocabulary/text_chunks.h"

namespace cohort::internal {

// A token that a text has twice, for whoever says it in words of its own.
class RepeatedTokenError final : public InvalidArgumentError {
 public:
  RepeatedTokenError(std::string token, std::string first, std::string second);

  const std::string& token() const { return token_; }
  // "'words.txt', line 2 (byte offset 2)"
  const std::string& first() const { return first_; }
  const std::string& second() const { return second_; }

 private:
  std::string token_, first_, second_;
};

struct IndexEntriesOptions {
  int threads = 1;
  uint64_t memory_bytes = 0;  // for keys; one part's at least
  uint64_t (*hash)(std::string_view) = nullptr;
};

// Thread safety: none; it starts threads of its own.
class IndexEntries {
 public:
  // `layout` says how many lines there are, and which function to make. Both must stay.
  IndexEntries(const TextChunks& text, const IndexLayout& layout,
               const IndexEntriesOptions& options);

  // Gives all entries to `append`, in order. False: the function does not fit, another seed may.
  // Errors: InvalidArgument (an empty line, a line without the column), RepeatedToken, those of
  // reading and of `append`.
  bool build(FunctionRef<void(std::string_view)> append);

  // What there is after that.
  std::string_view pilots() const;
  std::string_view samples() const;
  const std::vector<Twin>& twins() const { return twins_; }

 private:
  struct Key {
    uint64_t mixed;
    uint64_t offset;
    uint32_t number;
  };
  struct WrongLine {
    uint64_t number, offset;
    int64_t columns;
  };
  struct Repeated {
    uint64_t first, second;
    std::string token;
  };
  class Scatter;
  class PartWork;

  bool build_group(uint64_t first_part, uint64_t parts);
  void fail_if_wrong() const;
  void note_wrong_line(const TextChunks::Line& line);
  void note_repeated(uint64_t first, uint64_t second, const std::string& token);
  // Sorts out keys of one hash: leaves the first, whose token no other has; the rest are twins.
  void sort_out(std::vector<Key>& same_hash);
  std::string token_at(uint64_t offset) const;
  std::string place_of(uint64_t line) const;

  const TextChunks& text_;
  const IndexLayout& layout_;
  const IndexEntriesOptions options_;
  const EntryFormat format_;
  const uint64_t most_keys_;  // of a part

  std::vector<uint16_t> pilots_;
  std::vector<uint64_t> samples_;

  // The group of parts that is worked on.
  uint64_t first_part_ = 0;
  std::unique_ptr<Key[]> keys_;  // most_keys_ of each part; then the part's entries
  std::vector<std::atomic<uint32_t>> counts_;

  std::atomic<bool> does_not_fit_ = false;
  std::mutex mutex_;
  std::vector<Twin> twins_;
  std::optional<WrongLine> empty_line_;  // the first
  std::optional<WrongLine> short_line_;  // without the column
  std::optional<Repeated> repeated_;     // whose second place is the first
};

}  // namespace cohort::internal
