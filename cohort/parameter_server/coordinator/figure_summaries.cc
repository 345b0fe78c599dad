#include "cohort/parameter_server/coordinator/figure_summaries.h"

#include <exception>

#include "cohort/core/observe/logging.h"
#include "cohort/train/summary/summary.h"

namespace cohort::internal {

FigureSummaries::FigureSummaries(const summary::SummaryWriter& writer) {
  const auto scope = writer.as_default();
  to_writer_ = recording_state();
}

void FigureSummaries::record(const std::string& owner, int64_t step,
                             const NamedFigures& figures) noexcept {
  if (has_failed_) return;
  try {
    const ScopedRecordingState as_wanted(to_writer_);
    for (const auto& [name, value] : figures) {
      summary::scalar(owner + "/" + name, value, {.step = step});
    }
  } catch (const std::exception& error) {
    if (!has_failed_.exchange(true)) {
      log_warning("the coordinator's summaries end here: ", error.what());
    }
  }
}

}  // namespace cohort::internal
