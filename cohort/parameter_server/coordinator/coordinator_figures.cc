#include "cohort/parameter_server/coordinator/coordinator_figures.h"

#include <chrono>
#include <utility>

#include "cohort/cluster/known_jobs.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/parameter_server/store/load_figures.h"
#include "cohort/parameter_server/store/store_message.h"

namespace cohort::internal {

using distribute::coordinator::WorkerState;

CoordinatorFigures::CoordinatorFigures(const CoordinatorSurroundings& around,
                                       const Options& options, const ClosureQueue& queue,
                                       const rpc::Clock& clock)
    : around_(around), options_(options), queue_(queue), clock_(clock) {
  told_ = recorded_ = count({});
  if (options.summary_writer) {
    summaries_ = std::make_shared<FigureSummaries>(*options.summary_writer);
  }
}

CoordinatorFigures::Counted CoordinatorFigures::count(const Workers& workers) const {
  Counted counted{.done = 0, .at = clock_.now()};
  for (const WorkerState& worker : workers) counted.done += worker.done;
  return counted;
}

NamedFigures CoordinatorFigures::figures(const Workers& workers, const Counted& since) const {
  constexpr size_t kMostWorkersByName = 32;  // a task may have so many figures
  NamedFigures figures;
  const auto set = [&](const std::string& name, int64_t value) {
    figures.emplace_back(name, static_cast<double>(value));
  };
  set("closures queued", static_cast<int64_t>(queue_.queued()));
  set("closures in flight", static_cast<int64_t>(queue_.in_flight()));
  int64_t done = 0, retried = 0;
  for (size_t i = 0; i < workers.size(); ++i) {
    done += workers[i].done;
    retried += workers[i].retried;
    if (i >= kMostWorkersByName) continue;
    set(str("worker ", i, " in flight"), workers[i].in_flight);
    set(str("worker ", i, " done"), workers[i].done);
    set(str("worker ", i, " retried"), workers[i].retried);
  }
  set("closures done", done);
  set("closures retried", retried);
  const double seconds = std::chrono::duration<double>(clock_.now() - since.at).count();
  const auto new_ones = static_cast<double>(done - since.done);
  figures.emplace_back("closures/s", seconds <= 0 ? 0 : new_ones / seconds);
  return figures;
}

void CoordinatorFigures::tell(const Workers& workers) {
  const Counted since = std::exchange(told_, count(workers));
  for (const auto& [name, value] : figures(workers, since)) around_.set_figure(name, value);
}

// The answer of a ps task that is away does not come, and is missed by nobody.
void CoordinatorFigures::record(const Workers& workers) {
  const Counted since = std::exchange(recorded_, count(workers));
  const int64_t step = recorded_.done;
  summaries_->record("coordinator", step, figures(workers, since));
  for (int ps = 0; ps < around_.num_ps; ++ps) {
    around_.channel({kPs, ps})->start(
        "store/load", {.control = ""}, {.timeout = options_.summary_every},
        [ps, step, summaries = summaries_](const rpc::CallResult& result) {
          if (result.error != nullptr) return;
          try {
            summaries->record(str("ps ", ps), step, figures_of(decode_load(result.reply)));
          } catch (const Error&) {  // an answer that is no load
          }
        });
  }
}

void CoordinatorFigures::finish(const Workers& workers) {
  const Counted now = count(workers);
  const NamedFigures last = figures(workers, now);
  if (are_told()) {
    for (const auto& [name, value] : last) around_.set_figure(name, value);
  }
  if (are_recorded()) summaries_->record("coordinator", now.done, last);
}

}  // namespace cohort::internal
