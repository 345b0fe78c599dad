// Finds tokens in a vocabulary's index, whose bytes are in memory or mapped.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/ops/vocabulary/index_layout.h"

namespace cohort::internal {

// Bytes whose blocks are checked as they are touched. Thread safety: any thread.
class CheckedBytes {
 public:
  // `checksums`: 32 bits a block. `path` is for messages.
  CheckedBytes(std::string_view bytes, const char* checksums, std::string path);

  // `length` bytes, 1 at least, from `offset` on. Errors: DataLoss (a block is not what was
  // written; names the file and the block's offset).
  const char* at(uint64_t offset, uint64_t length) const {
    const uint64_t first = offset / kIndexBlock, last = (offset + length - 1) / kIndexBlock;
    if (!is_checked(first)) [[unlikely]]
      check(first);
    for (uint64_t block = first; block < last;) {
      if (!is_checked(++block)) [[unlikely]]
        check(block);
    }
    return bytes_.data() + offset;
  }
  // The place of bytes that nobody reads yet.
  const char* unchecked(uint64_t offset) const { return bytes_.data() + offset; }

 private:
  bool is_checked(uint64_t block) const {
    return (checked_[block / 64].load(std::memory_order_relaxed) >> (block % 64) & 1) != 0;
  }
  void check(uint64_t block) const;

  const std::string_view bytes_;
  const char* const checksums_;
  const std::string path_;
  const std::unique_ptr<std::atomic<uint64_t>[]> checked_;  // a bit a block
};

// Tokens are numbered by their lines, from 0. Views that it gives live as long as its bytes.
// Thread safety: any thread.
class VocabularyIndex {
 public:
  using Hash = uint64_t (*)(std::string_view);

  // `bytes` must stay; `path` is for messages. `hash` is another one for tests alone.
  // Errors: DataLoss, Unimplemented (names the file).
  VocabularyIndex(std::string_view bytes, std::string path, Hash hash = nullptr);

  const IndexLayout& layout() const { return layout_; }
  int64_t size() const { return static_cast<int64_t>(layout_.lines); }

  // Errors of all these: DataLoss (as CheckedBytes).
  // The number of `token`; -1: there is none.
  int64_t find(std::string_view token) const;
  // find() of each of `count` tokens, whose memory is on its way while others are waited for.
  void find_all(const std::string_view* tokens, int64_t count, int64_t* numbers) const;
  // 0 <= number < size().
  std::string_view token(int64_t number) const;
  // token() of each of `count` numbers; those out of range are passed over, and leave their token
  // as it is.
  void tokens_at(const int64_t* numbers, int64_t count, std::string_view* tokens) const;
  std::vector<std::string_view> tokens() const;
  // The offset in the text at which the line of that number begins.
  uint64_t line_offset(int64_t number) const;
  std::string_view text() const;
  // The checksums of the text's blocks.
  const char* checksums() const { return checksums_; }
  // Touches all bytes.
  void check_all() const;

 private:
  struct Probe;

  void prefetch_pilot(Probe& probe) const;
  void prefetch_entry(Probe& probe) const;
  void prefetch_text(Probe& probe) const;
  int64_t number_of(const Probe& probe) const;
  bool is_at(std::string_view token, uint64_t offset) const;
  int64_t find_twin(std::string_view token, uint64_t hash) const;
  std::string_view line_at(uint64_t offset) const;
  uint64_t sample(int64_t number) const;

  const std::string path_;
  const IndexLayout layout_;
  const EntryFormat format_;
  const uint64_t entries_at_, pilots_at_;
  const char* const checksums_;
  const CheckedBytes bytes_;
  const Hash hash_;
};

}  // namespace cohort::internal
