// Writes TFRecord files, TensorFlow's files of byte strings.
//
//   io::TFRecordWriter writer("train.tfrecord.gz", {.compression_type = "GZIP"});
//   for (const auto& sample : samples) writer.write(serialize(sample));
//   writer.close();
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "cohort/core/export.h"

namespace cohort::internal {
class FileSystem;
}  // namespace cohort::internal

namespace cohort::io {

struct TFRecordOptions {
  // "", "GZIP" or "ZLIB".
  std::string compression_type = "";
};

// Thread safety: none. A writer of which a call failed, other than by a wrong option, is to be
// given up: the file ends wherever it ends.
class COHORT_API TFRecordWriter {
 public:
  // Makes the file, or replaces it. Errors: InvalidArgument (no such compression; there is a
  // directory, device or pipe), NotFound (no such directory), PermissionDenied, ResourceExhausted.
  explicit TFRecordWriter(const std::string& path, const TFRecordOptions& options = {});
  TFRecordWriter(internal::FileSystem& files, const std::string& path,
                 const TFRecordOptions& options = {});
  // Closes, if close() was not called, and says nothing of errors.
  ~TFRecordWriter();
  TFRecordWriter(TFRecordWriter&&) noexcept;
  TFRecordWriter& operator=(TFRecordWriter&&) noexcept;

  // One record of any bytes, none included. Errors: FailedPrecondition (after close()),
  // ResourceExhausted (a full disk), DataLoss (the device).
  void write(std::string_view record);
  // Afterwards all records that were written are on the device, whatever happens then.
  // Errors: as write.
  void flush();
  // Errors: as write. A second call does nothing.
  void close();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cohort::io
