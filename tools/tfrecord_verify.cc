#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "tools/printable.h"
#include "tools/tfrecord_commands.h"
#include "tools/tfrecord_files.h"

namespace cohort::tools {

int verify_tfrecords(internal::FileSystem& files, const TFRecordVerifyOptions& options,
                     std::ostream& out) {
  bool damaged = false;
  for (const std::string& path : options.paths) {
    const TFRecordSummary summary =
        read_tfrecords(files, path, options.compression, [](std::string_view) {});
    out << (summary.damage.empty() ? "OK " : "DAMAGED ") << printable(internal::quoted(path))
        << ": " << counted(summary.records, "record") << ", " << counted(summary.bytes, "byte");
    if (!summary.damage.empty()) {
      damaged = true;
      out << ", then\n  " << printable(summary.damage);
    }
    out << '\n';
  }
  return damaged ? kExitBadData : kExitOk;
}

}  // namespace cohort::tools
