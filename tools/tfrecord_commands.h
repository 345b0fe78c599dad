// `cohort tfrecord ...`: looks at TFRecord files, and at the tf.Example records in them.
//
// Each command writes its result to `out` and returns the program's exit code. Names from files are
// written as printable() makes them. Memory: one block of records.
// Errors: NotFound, PermissionDenied, InvalidArgument (a directory; no such compression).
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "cohort/core/files/file_system.h"
#include "tools/exit_codes.h"

namespace cohort::tools {

struct TFRecordLsOptions {
  std::vector<std::string> paths;
  std::string compression = "auto";  // or none, gzip, zlib
  bool features = false;             // also what the records have in them, as tf.Examples
  bool json = false;
};
// How many records each file has, and what they add up to. A damaged file is listed with what comes
// before the damage, and makes the exit code kExitBadData. Of several files those that cannot be
// read at all are left out; `err` says why, a line each, and the first decides the exit code. The
// error of a single file is thrown.
int list_tfrecords(internal::FileSystem& files, const TFRecordLsOptions& options, std::ostream& out,
                   std::ostream& err);

struct TFRecordVerifyOptions {
  std::vector<std::string> paths;
  std::string compression = "auto";
};
// Reads everything, checks every checksum, and says where each file is damaged first.
int verify_tfrecords(internal::FileSystem& files, const TFRecordVerifyOptions& options,
                     std::ostream& out);

}  // namespace cohort::tools
