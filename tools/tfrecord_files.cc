#include "tools/tfrecord_files.h"

#include <algorithm>
#include <array>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/data/records/record_reader.h"
#include "cohort/data/records/tfrecord_framing.h"

namespace cohort::tools {
namespace {

using internal::Compression;
using internal::FileSystem;

// A TFRecord file tells itself by the checksum of its first length.
Compression guess_compression(FileSystem& files, const std::string& path) {
  const auto file = files.open(path);
  std::array<char, internal::kTFRecordHeaderBytes> start{};
  file->read(0, start.data(), std::min<uint64_t>(file->size(), start.size()));
  if (internal::is_tfrecord_header({start.data(), start.size()})) return Compression::kNone;
  const auto first = static_cast<unsigned char>(start[0]);
  const auto second = static_cast<unsigned char>(start[1]);
  if (first == 0x1f && second == 0x8b) return Compression::kGzip;
  const bool zlib = (first & 0x0f) == 8 && (first << 8 | second) % 31 == 0;
  return zlib ? Compression::kZlib : Compression::kNone;
}

Compression compression_of(FileSystem& files, const std::string& path, const std::string& name) {
  if (name == "auto") return guess_compression(files, path);
  return internal::compression_of(name == "none" ? "" : internal::upper(name));
}

}  // namespace

TFRecordSummary read_tfrecords(FileSystem& files, const std::string& path,
                               const std::string& compression,
                               const std::function<void(std::string_view record)>& visit) {
  TFRecordSummary summary;
  summary.compression = compression_of(files, path, compression);
  const auto reader =
      internal::open_records(files, path, summary.compression, internal::make_tfrecord_framing());
  try {
    while (true) {
      const internal::RecordRun run = reader->next();
      if (run.records.empty()) break;
      for (const std::string_view record : run.records) {
        visit(record);
        ++summary.records;
        summary.bytes += record.size();
      }
    }
  } catch (const DataLossError& error) {
    summary.damage = error.what();
  }
  return summary;
}

}  // namespace cohort::tools
