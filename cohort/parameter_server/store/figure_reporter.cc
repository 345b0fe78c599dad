#include "cohort/parameter_server/store/figure_reporter.h"

#include "cohort/cluster/server_core.h"
#include "cohort/core/error.h"

namespace cohort::internal {

void FigureReporter::tick(FunctionRef<NamedFigures()> figures) {
  const auto now = std::chrono::steady_clock::now();
  auto next = next_.load(std::memory_order_relaxed);
  if (now < next || !next_.compare_exchange_strong(next, now + kBetween)) return;
  tell(figures);
}

void FigureReporter::tell(FunctionRef<NamedFigures()> figures) {
  with_server(cluster_, self_, [&](ServerCore& server) {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> before = std::exchange(told_, {});
    for (const auto& [name, value] : figures()) {
      std::erase(before, name);
      try {
        server.coordination().set_figure(name, value);
        told_.push_back(name);
      } catch (const Error&) {
      }
    }
    for (const std::string& name : before) server.coordination().drop_figure(name);
  });
}

}  // namespace cohort::internal
