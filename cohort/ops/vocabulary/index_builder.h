// Builds the index of a vocabulary's text (index_layout.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/files/file_deadline.h"
#include "cohort/core/files/file_system.h"
#include "cohort/ops/vocabulary/index_entries.h"  // RepeatedTokenError
#include "cohort/ops/vocabulary/vocabulary_index.h"

namespace cohort::internal {

struct IndexBuildOptions {
  TokenColumn column = {};
  // What tells the text from others; nothing: that is not known yet.
  std::optional<TextIdentity> identity = std::nullopt;
  int threads = 1;
  // For keys on their way to their slots. Beside it the building takes 1.3 bytes a token, and 2 MiB
  // and the longest line a thread.
  uint64_t memory_bytes = uint64_t{1} << 30;
  uint32_t mode = 0600;  // of the file, as of open(2)
  FileDeadline deadline = kDefaultFileDeadline;
  VocabularyIndex::Hash hash = nullptr;  // for tests, as the index's
};

// Writes the index of `text` to `path`, under another name first: after a crash there is a whole
// index or none. The same text gives the same bytes, however many threads and how much memory.
// Returns how many tokens there are.
// Errors: RepeatedToken (the first line that repeats one; of a text that repeats very many, some
// line that does); InvalidArgument (an empty line, a line without that column: the first, with its
// place), FailedPrecondition (the text changes meanwhile), ResourceExhausted (2^32 - 1 lines or
// more; the disk is full), of reading and writing: as FileSystem.
int64_t build_vocabulary_index(FileSystem& files, const std::string& text, const std::string& path,
                               const IndexBuildOptions& options);

}  // namespace cohort::internal
