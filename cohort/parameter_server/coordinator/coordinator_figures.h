// What people see of a coordinator at work: in `cohort cluster status`, in metrics, and as
// summaries.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cohort/cluster/rpc/clock.h"
#include "cohort/parameter_server/coordinator/closure_queue.h"
#include "cohort/parameter_server/coordinator/coordinator_options.h"
#include "cohort/parameter_server/coordinator/coordinator_surroundings.h"
#include "cohort/parameter_server/coordinator/figure_summaries.h"
#include "cohort/parameter_server/store/named_figures.h"

namespace cohort::internal {

// Thread safety: one thread for each of tell, record and finish.
class CoordinatorFigures {
 public:
  using Options = distribute::coordinator::ClusterCoordinatorOptions;
  using Workers = std::vector<distribute::coordinator::WorkerState>;

  // Errors: those of FigureSummaries.
  CoordinatorFigures(const CoordinatorSurroundings& around, const Options& options,
                     const ClosureQueue& queue, const rpc::Clock& clock);

  bool are_told() const { return around_.set_figure != nullptr; }
  bool are_recorded() const { return summaries_ != nullptr; }
  // Makes the figures known, with closures a second since the last time.
  void tell(const Workers& workers);
  // Adds them, and those of the ps tasks, to the summaries, in the same way.
  void record(const Workers& workers);
  // Does both for the last time, when nothing runs any more.
  void finish(const Workers& workers);

 private:
  // Closures that have ended, at a time.
  struct Counted {
    int64_t done = 0;
    rpc::Clock::Time at = {};
  };
  Counted count(const Workers& workers) const;
  // Closures a second are those since then; where no time has passed, there are none.
  NamedFigures figures(const Workers& workers, const Counted& since) const;

  const CoordinatorSurroundings& around_;
  const Options& options_;
  const ClosureQueue& queue_;
  const rpc::Clock& clock_;
  std::shared_ptr<FigureSummaries> summaries_;  // null: none are wanted
  Counted told_;
  Counted recorded_;
};

}  // namespace cohort::internal
