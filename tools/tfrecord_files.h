// Reading TFRecord files whose compression nobody has told.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "cohort/core/files/compression.h"
#include "cohort/core/files/file_system.h"

namespace cohort::tools {

struct TFRecordSummary {
  internal::Compression compression = internal::Compression::kNone;
  uint64_t records = 0;
  uint64_t bytes = 0;  // of all records
  std::string damage;  // what is wrong after them; empty: nothing
};

// Reads a file to its end, or to the first damage. `compression`: auto, none, gzip or zlib.
// Errors: those of FileSystem::open, InvalidArgument (another compression), what `visit` throws
// other than DataLoss.
TFRecordSummary read_tfrecords(internal::FileSystem& files, const std::string& path,
                               const std::string& compression,
                               const std::function<void(std::string_view record)>& visit);

}  // namespace cohort::tools
