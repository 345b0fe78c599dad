// Sources of a lookup table's entries.
//
//   lookup::KeyValueTensorInitializer pairs(StringTensor({"no", "yes"}), at::arange(2));
//   lookup::TextFileInitializer lines("vocabulary.txt",
//                                     {.key_dtype = cohort::string,
//                                      .key_index = lookup::TextFileIndex::WHOLE_LINE,
//                                      .value_dtype = int64,
//                                      .value_index = lookup::TextFileIndex::LINE_NUMBER});
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/core/structure/leaf_type.h"
#include "cohort/core/structure/structure.h"

namespace cohort {
namespace internal {

class MappedVocabulary;

// The first `count` lines of a file that is mapped, to their numbers from `first_number` on.
struct MappedLines {
  std::shared_ptr<const MappedVocabulary> vocabulary;
  int64_t count = 0;
  int64_t first_number = 0;
};

}  // namespace internal

namespace lookup {

struct TableEntries {
  Leaf keys;    // strings or int64 [n]
  Leaf values;  // strings or numbers [n]
  // Names the place that entry `i` comes from, for messages.
  std::function<std::string(int64_t i)> place;
  // The lines of a file that TextFileInitializer maps; the keys and values are then empty.
  std::optional<internal::MappedLines> lines = std::nullopt;
};

// Thread safety: immutable.
class COHORT_API TableInitializer {
 public:
  virtual ~TableInitializer() = default;
  // Called once for each table. Errors: each initializer's.
  virtual TableEntries read() const = 0;
};

// Shapes: keys [n], strings or integers; values [n], strings or numbers.
class COHORT_API KeyValueTensorInitializer final : public TableInitializer {
 public:
  // Errors: InvalidArgument (a shape; keys that are not integers).
  KeyValueTensorInitializer(Leaf keys, Leaf values);
  TableEntries read() const override;

 private:
  Leaf keys_;
  Leaf values_;
};

// What of a line is the key, and what the value: one of these, or the number of a column from 0.
struct TextFileIndex {
  static constexpr int64_t WHOLE_LINE = -2;
  static constexpr int64_t LINE_NUMBER = -1;  // from 0
};

struct TextFileInitializerOptions {
  LeafType key_dtype = cohort::string;  // or int64
  int64_t key_index = TextFileIndex::WHOLE_LINE;
  LeafType value_dtype = cohort::int64;  // int64, int32, float32, float64 or strings
  int64_t value_index = TextFileIndex::LINE_NUMBER;
  // The first so many lines; missing: all.
  std::optional<int64_t> vocab_size = std::nullopt;
  char delimiter = '\t';           // between columns
  int64_t value_index_offset = 0;  // added to line numbers that are values
};

// The lines of a text file, read when the table is made; strings are not copied. A file of 16 MiB
// or more whose line numbers are the values is mapped: see docs/preprocessing.md.
class COHORT_API TextFileInitializer final : public TableInitializer {
 public:
  // Errors: InvalidArgument (an index below -2, a dtype that is not listed or does not fit an
  // index).
  explicit TextFileInitializer(std::string filename, TextFileInitializerOptions options = {});
  // Errors: NotFound (no such file); InvalidArgument (an empty line, a line without that column or
  // with no number there, fewer lines than vocab_size: names the file, the line and its offset).
  TableEntries read() const override;

 private:
  std::string filename_;
  TextFileInitializerOptions options_;
};

}  // namespace lookup
}  // namespace cohort
