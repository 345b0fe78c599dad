// Any bytes are a compressed TFRecord file up to some place, and however much they inflate to, no
// more memory is taken than for the largest record there may be. The first byte says what the rest
// is: gzip, zlib, or bytes that are compressed here first, so that fuzzing gets past the checksums.
#include <cstdint>
#include <string>
#include <string_view>

#include "cohort/core/files/deflate.h"
#include "cohort/data/records/tfrecord_framing.h"
#include "tests/fuzz/record_check.h"

namespace {

// Twice a record of 1 MiB, old and new, the buffer of the file, and the inflater.
constexpr int64_t kMostMemory = 5 << 20;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cohort;
  using internal::Compression;
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Compression compression = data[0] & 1 ? Compression::kZlib : Compression::kGzip;
  std::string packed(rest);
  if (data[0] & 2) {
    packed.clear();
    internal::Deflater deflater(compression);
    deflater.deflate(rest, packed);
    deflater.finish(packed);
  }
  const fuzz::RecordFile file =
      fuzz::check_records(packed, compression, internal::make_tfrecord_framing(), kMostMemory);
  size_t bytes = 0;
  for (const std::string& record : file.records) bytes += record.size() + 16;
  fuzz::require_of_records(bytes <= packed.size() * internal::kMaxDeflateRatio + (128 << 10),
                           "no more bytes than deflate can make of the file");
  return 0;
}
