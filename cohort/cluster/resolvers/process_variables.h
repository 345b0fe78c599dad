// The environment as resolvers read it: the process's, or one given in its place.
#pragma once

#include <optional>
#include <string>

#include "cohort/cluster/cluster_resolver.h"

namespace cohort::internal {

// Thread safety: none, where the process changes its environment meanwhile.
class VariableReader {
 public:
  explicit VariableReader(const std::optional<distribute::cluster_resolver::Variables>& variables)
      : variables_(variables) {}

  // Nothing where it is not set; an empty one is set.
  std::optional<std::string> find(const std::string& name) const;
  // Errors: FailedPrecondition (not set; `launcher` would have set it).
  std::string get(const std::string& name, const std::string& launcher) const;
  // A whole number of at least `lowest`. Errors: InvalidArgument (it is none).
  std::optional<int> find_number(const std::string& name, int lowest) const;
  int get_number(const std::string& name, int lowest, const std::string& launcher) const;

 private:
  std::optional<distribute::cluster_resolver::Variables> variables_;
};

}  // namespace cohort::internal
