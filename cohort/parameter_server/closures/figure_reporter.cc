#include "cohort/parameter_server/closures/figure_reporter.h"

#include "cohort/cluster/server_core.h"
#include "cohort/cluster/server_registry.h"

namespace cohort::internal {

void FigureReporter::tick(FunctionRef<void(Set set)> tell) {
  constexpr std::chrono::seconds kBetween{1};
  const auto now = std::chrono::steady_clock::now();
  auto next = next_.load(std::memory_order_relaxed);
  if (now < next || !next_.compare_exchange_strong(next, now + kBetween)) return;
  with_server(self_, [&](ServerCore& server) {
    const auto set = [&](const std::string& name, double value) {
      server.coordination().set_figure(name, value);
    };
    tell(set);
  });
}

}  // namespace cohort::internal
