// A learned vocabulary: the tokens' numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/structure/structure.h"
#include "cohort/core/threads/lazy.h"
#include "cohort/ops/lookup/static_hash_table.h"

namespace cohort::internal {

struct TokenFile {
  std::string path;
  bool has_frequencies = false;  // a line is "frequency token"
  uint64_t bytes = 0;
  uint32_t crc32c = 0;
  int64_t lines = 0;
};

// Reads its file when it is first asked for a token. Thread safety: any thread.
class VocabularyTable {
 public:
  explicit VocabularyTable(TokenFile file) : file_(std::move(file)) {}
  // A table without a file, for probes.
  explicit VocabularyTable(lookup::StaticHashTable table) : table_(std::move(table)) {}

  const TokenFile& file() const { return file_; }
  // Maps a token to the number of its line, int64; others to -1.
  // Errors: NotFound and the others of reading; DataLoss (another size or checksum).
  const lookup::StaticHashTable& table() const;

 private:
  const TokenFile file_ = {};
  const Lazy<lookup::StaticHashTable> table_;
};

}  // namespace cohort::internal
