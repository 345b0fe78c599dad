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
#include "cohort/core/handle.h"

namespace cohort::internal {
class FileSystem;
}  // namespace cohort::internal

namespace cohort::io {

struct TFRecordOptions {
  // "", "GZIP" or "ZLIB".
  std::string compression_type = "";
};

// Thread safety: none. After a call has failed, except for a wrong option, the writer must not be
// used any more; the file may end anywhere.
class COHORT_API TFRecordWriter {
 public:
  // Makes the file, or replaces it. Errors: InvalidArgument (no such compression; there is a
  // directory, device or pipe), NotFound (no such directory), PermissionDenied, ResourceExhausted.
  explicit TFRecordWriter(const std::string& path, const TFRecordOptions& options = {});
  TFRecordWriter(internal::FileSystem& files, const std::string& path,
                 const TFRecordOptions& options = {});
  // Closes the file if close() was not called, and ignores errors.
  ~TFRecordWriter();
  TFRecordWriter(TFRecordWriter&&) noexcept;
  TFRecordWriter& operator=(TFRecordWriter&&) noexcept;

  // Writes one record of any bytes; it may be empty.
  // Errors: FailedPrecondition (after close()), ResourceExhausted (a full disk), DataLoss (the
  // device).
  void write(std::string_view record);
  // Makes all records written so far durable: they are on the device. Errors: as write.
  void flush();
  // Errors: as write. A second call does nothing.
  void close();

 private:
  struct State;
  internal::Handle<State, "TFRecordWriter", std::unique_ptr<State>> state_;
};

}  // namespace cohort::io
