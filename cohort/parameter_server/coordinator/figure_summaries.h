// Records figures as scalars of tf.summary, beside those of the program.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "cohort/parameter_server/store/named_figures.h"
#include "cohort/train/summary/recording.h"
#include "cohort/train/summary/summary_writer.h"

namespace cohort::internal {

// Thread safety: any thread.
class FigureSummaries {
 public:
  // Errors: FailedPrecondition (it is closed).
  explicit FigureSummaries(const summary::SummaryWriter& writer);

  // "OWNER/NAME" each. The first error, of a full disk or a writer that was closed, is logged and
  // ends it.
  void record(const std::string& owner, int64_t step, const NamedFigures& figures) noexcept;

 private:
  RecordingStatePtr to_writer_;
  std::atomic<bool> has_failed_{false};
};

}  // namespace cohort::internal
