#include "cohort/parameter_server/store/load_figures.h"

namespace cohort::internal {

NamedFigures figures_of(const VariableStore::Load& load) {
  NamedFigures figures;
  const auto set = [&](const std::string& name, int64_t value) {
    figures.emplace_back(name, static_cast<double>(value));
  };
  set("variable shards", load.shards);
  set("variable bytes", load.bytes);
  for (const auto& [name, bytes] : load.largest) set("bytes of " + name, bytes);
  set("operations applied", load.operations);
  if (load.updates > 0) {
    figures.emplace_back("mean staleness",
                         static_cast<double>(load.staleness) / static_cast<double>(load.updates));
  }
  set("pushes repeated", load.repeated);
  set("stale calls refused", load.refused);
  set("bytes received", load.bytes_received);
  set("bytes sent", load.bytes_sent);
  return figures;
}

}  // namespace cohort::internal
