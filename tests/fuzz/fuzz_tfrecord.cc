// Any bytes are a TFRecord file up to some place: writing the records that were read gives those
// bytes again.
#include <cstdint>
#include <string>
#include <string_view>

#include "cohort/data/records/tfrecord_framing.h"
#include "tests/fuzz/record_check.h"

namespace {

// The blocks, their lists of records, and what the library itself takes.
constexpr int64_t kFreeBytes = 64 << 10;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cohort;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto most_memory = static_cast<int64_t>(size) * 4 + kFreeBytes;
  const fuzz::RecordFile file = fuzz::check_records(bytes, internal::Compression::kNone,
                                                    internal::make_tfrecord_framing(), most_memory);
  std::string written;
  for (const std::string& record : file.records) {
    const auto header = internal::tfrecord_header(record);
    const auto footer = internal::tfrecord_footer(record);
    written.append(header.data(), header.size())
        .append(record)
        .append(footer.data(), footer.size());
  }
  fuzz::require_of_records(file.damaged ? bytes.starts_with(written) : bytes == written,
                           "what is written again is the file, or its beginning");
  return 0;
}
