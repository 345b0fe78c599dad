// A large vocabulary, mapped instead of read: it is open at once, and all processes of a host share
// its memory.
//
//   if (const auto vocabulary = MappedVocabulary::open("words.txt")) {
//     vocabulary->index().find("word");        // the number of its line, or -1
//     vocabulary->index().token(0);            // the first line
//   }
//
// The text stays the truth. What is mapped is an index (index_layout.h) that is built at first use
// and kept beside the text, as `words.txt.cohort-index`, or in the user's cache
// ($XDG_CACHE_HOME/cohort/vocabularies) where that cannot be or another machine serves the text.
// It counts as long as the text has the size, times and inode of when it was indexed. If it has
// the size alone, as after a copy, the text is read and compared with the checksums, once.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cohort/core/files/mapped_file.h"
#include "cohort/ops/vocabulary/index_builder.h"
#include "cohort/ops/vocabulary/vocabulary_index.h"

namespace cohort::internal {

struct MappedVocabularyOptions {
  TokenColumn column = {};
  // Texts of this size or more get an index. Of smaller ones an index is used that is there.
  uint64_t least_bytes = uint64_t{16} << 20;
  int threads = 0;  // that build an index; 0: as many as there are cores to use
  // How long to wait for another process that is building the same index.
  std::chrono::seconds patience{3600};
  // How long a text must have been left alone for its times to tell it from what it will be: longer
  // than the step in which the file system counts time.
  std::chrono::nanoseconds settled_after = std::chrono::seconds(2);
};

// Thread safety: immutable.
class MappedVocabulary {
 public:
  // Nothing where the text should be read instead: it is small, or an index can be written nowhere,
  // which a warning says. Builds the index, if need be, and logs how long that took.
  // Errors: NotFound (no such text); those of build_vocabulary_index but for what ends in nothing;
  // DeadlineExceeded (another process builds for longer than .patience).
  static std::shared_ptr<const MappedVocabulary> open(const std::string& text,
                                                      const MappedVocabularyOptions& options = {});

  // For a file that is an index. Errors: as VocabularyIndex and MappedFile.
  MappedVocabulary(std::string text, const std::string& index);

  const VocabularyIndex& index() const { return index_; }
  // "'words.txt', line 3 (byte offset 12)"
  std::string place(int64_t number) const;
  // Reads the text, as it is now, and compares it with the checksums. Errors: those of reading.
  bool is_of_text() const;
  // The index's path.
  const std::string& path() const { return file_.path(); }

 private:
  friend class VocabularyOpening;

  const std::string text_;
  const MappedFile file_;
  const VocabularyIndex index_;
};

// The paths at which the index of a text may lie, the best one first.
std::vector<std::string> vocabulary_index_paths(const std::string& text, const TokenColumn& column);

}  // namespace cohort::internal
