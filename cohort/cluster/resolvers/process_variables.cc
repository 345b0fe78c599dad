#include "cohort/cluster/resolvers/process_variables.h"

#include <cstdint>
#include <cstdlib>

#include "cohort/cluster/config_error.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {

std::optional<std::string> VariableReader::find(const std::string& name) const {
  if (!variables_) {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  }
  const auto found = variables_->find(name);
  return found == variables_->end() ? std::nullopt : std::optional(found->second);
}

std::string VariableReader::get(const std::string& name, const std::string& launcher) const {
  if (auto value = find(name)) return *std::move(value);
  throw FailedPreconditionError(
      str(name, " is not set in the environment; was this program started by ", launcher, "?"));
}

std::optional<int> VariableReader::find_number(const std::string& name, int lowest) const {
  const std::optional<std::string> text = find(name);
  if (!text) return std::nullopt;
  const auto number = parse_number<int32_t>(*text);
  if (!number || *number < lowest) {
    throw InvalidArgumentError(str("environment: ", name, ": must be a whole number of at least ",
                                   lowest, ", is ", quoted_start(*text)));
  }
  return *number;
}

int VariableReader::get_number(const std::string& name, int lowest,
                               const std::string& launcher) const {
  if (const auto number = find_number(name, lowest)) return *number;
  get(name, launcher);  // throws
  return lowest;
}

}  // namespace cohort::internal
