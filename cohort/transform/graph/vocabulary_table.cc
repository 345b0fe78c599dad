#include "cohort/transform/graph/vocabulary_table.h"

#include <ATen/ops/arange.h>

#include <memory>

#include "cohort/core/error.h"
#include "cohort/core/files/crc32c.h"
#include "cohort/core/files/file_system.h"
#include "cohort/core/text.h"
#include "cohort/ops/lookup/initializers.h"
#include "cohort/ops/lookup/text_lines.h"

namespace cohort::internal {
namespace {

constexpr int64_t kUnknown = -1;

void check_bytes(const TokenFile& file) {
  const auto opened = posix_file_system().open(file.path);
  uint32_t crc = 0;
  const uint64_t bytes = opened->size();
  if (bytes == file.bytes) {
    opened->scan(0, bytes, [&](std::string_view block) { crc = crc32c(block, crc); });
    if (crc == file.crc32c) return;
  }
  throw DataLossError(str("vocabulary file ", quoted(file.path), ": ",
                          bytes == file.bytes ? "its checksum" : "its size",
                          " is not the one with which the transform was written; it was changed "
                          "or damaged"));
}

// The token is all that follows the first blank, with blanks of its own.
lookup::StaticHashTable table_behind_frequencies(const std::string& path) {
  const auto text = std::make_shared<TextLines>(read_text_lines(path));
  for (size_t i = 0; i < text->lines.size(); ++i) {
    std::string_view& line = text->lines[i];
    const size_t blank = line.find(' ');
    if (blank == std::string_view::npos) {
      throw InvalidArgumentError(
          str(line_place(path, *text, i), ": there is no token behind a frequency"));
    }
    line.remove_prefix(blank + 1);
  }
  const auto count = static_cast<int64_t>(text->lines.size());
  const std::string_view* tokens = text->lines.data();
  return lookup::StaticHashTable(lookup::KeyValueTensorInitializer(
                                     StringTensor::over(text, tokens, {count}), at::arange(count)),
                                 Structure(kUnknown));
}

}  // namespace

const lookup::StaticHashTable& VocabularyTable::table() const {
  return table_.get([this] {
    check_bytes(file_);
    if (file_.has_frequencies) return table_behind_frequencies(file_.path);
    return lookup::StaticHashTable(lookup::TextFileInitializer(file_.path), Structure(kUnknown));
  });
}

}  // namespace cohort::internal
