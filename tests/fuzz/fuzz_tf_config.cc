// Any bytes are either a TF_CONFIG, which is the same when it is printed and read again, or an
// error on one line; and no cluster may run in which two tasks have one address.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "cohort/cluster/address.h"
#include "cohort/cluster/cluster_check.h"
#include "cohort/cluster/tf_config.h"
#include "cohort/core/error.h"

namespace {

using cohort::internal::TfConfig;

void require(bool holds, std::string_view property) {
  if (holds) return;
  std::cerr << "fuzz_tf_config: broken property: " << property << '\n';
  std::abort();
}

void require_one_line(const cohort::InvalidArgumentError& error) {
  const std::string_view message = error.what();
  require(message.starts_with("TF_CONFIG: "), "an error names its source");
  require(message.find(": ", 11) != message.npos, "an error names its path");
  require(message.find('\n') == message.npos && message.size() < 10'000, "an error is one line");
}

std::optional<TfConfig> parse(std::string_view text) {
  try {
    return cohort::internal::parse_tf_config(text);
  } catch (const cohort::InvalidArgumentError& error) {
    require_one_line(error);
    return std::nullopt;
  }
}

void check_what_may_run(const TfConfig& config) {
  std::optional<cohort::TaskId> self;
  if (config.task_type && config.task_index) self = {*config.task_type, *config.task_index};
  try {
    cohort::internal::check_cluster(config.cluster, self,
                                    {.source = "TF_CONFIG", .may_be_empty = true});
  } catch (const cohort::InvalidArgumentError& error) {
    return require_one_line(error);
  }
  std::set<std::string> addresses;
  for (const cohort::TaskId& task : config.cluster.tasks()) {
    const auto address =
        cohort::internal::parse_address(config.cluster.task_address(task.job, task.index));
    require(addresses.insert(to_string(canonical(address))).second,
            "every task has its own address");
  }
  require(config.cluster.empty() || self.has_value(), "it is known which task this is");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::optional<TfConfig> config = parse(text);
  if (!config) return 0;
  const std::string printed = cohort::internal::print_tf_config(*config);
  require(printed.find('\n') == printed.npos, "it is printed on one line");
  // Empty jobs, and indices of many digits, may take more than was there.
  require(parse(printed) == config, "what is printed is what was read");
  check_what_may_run(*config);
  return 0;
}
