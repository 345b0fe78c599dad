// What people see of a coordinator at work: in `cohort cluster status`, in metrics, and as summaries.
#include <chrono>
#include <utility>

#include "cohort/cluster/known_jobs.h"
#include "cohort/core/error.h"
#include "cohort/parameter_server/coordinator/coordinator_core.h"
#include "cohort/parameter_server/store/load_figures.h"
#include "cohort/parameter_server/store/store_message.h"

namespace cohort::internal {

using distribute::coordinator::WorkerState;

CoordinatorCore::Counted CoordinatorCore::count() const {
  Counted counted{.done = 0, .at = clock_.now()};
  for (const WorkerState& worker : workers()) counted.done += worker.done;
  return counted;
}

NamedFigures CoordinatorCore::figures(const Counted& since) const {
  constexpr size_t kMostWorkersByName = 32;  // a task may have so many figures
  NamedFigures figures;
  const auto set = [&](const std::string& name, int64_t value) {
    figures.emplace_back(name, static_cast<double>(value));
  };
  set("closures queued", static_cast<int64_t>(queue_.queued()));
  set("closures in flight", static_cast<int64_t>(queue_.in_flight()));
  int64_t done = 0, retried = 0;
  const std::vector<WorkerState> states = workers();
  for (size_t i = 0; i < states.size(); ++i) {
    done += states[i].done;
    retried += states[i].retried;
    if (i >= kMostWorkersByName) continue;
    set(str("worker ", i, " in flight"), states[i].in_flight);
    set(str("worker ", i, " done"), states[i].done);
    set(str("worker ", i, " retried"), states[i].retried);
  }
  set("closures done", done);
  set("closures retried", retried);
  const double seconds = std::chrono::duration<double>(clock_.now() - since.at).count();
  const auto new_ones = static_cast<double>(done - since.done);
  figures.emplace_back("closures/s", seconds <= 0 ? 0 : new_ones / seconds);
  return figures;
}

void CoordinatorCore::tell_figures(const Counted& since) {
  const Counted now = count();
  for (const auto& [name, value] : figures(since)) surroundings_.set_figure(name, value);
  wake_after(std::chrono::seconds(1),
             if_alive([now](CoordinatorCore& self) { self.tell_figures(now); }));
}

// The answer of a ps task that is away does not come, and is missed by nobody.
void CoordinatorCore::record_summaries(const Counted& since) {
  const Counted now = count();
  summaries_->record("coordinator", now.done, figures(since));
  for (int ps = 0; ps < surroundings_.num_ps; ++ps) {
    surroundings_.channel({kPs, ps})->start(
        "store/load", {.control = ""}, {.timeout = options_.summary_every},
        [ps, step = now.done, summaries = summaries_](const rpc::CallResult& result) {
          if (result.error != nullptr) return;
          try {
            summaries->record(str("ps ", ps), step, figures_of(decode_load(result.reply)));
          } catch (const Error&) {  // an answer that is no load
          }
        });
  }
  wake_after(options_.summary_every,
             if_alive([now](CoordinatorCore& self) { self.record_summaries(now); }));
}

}  // namespace cohort::internal
