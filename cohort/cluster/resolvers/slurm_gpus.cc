#include "cohort/cluster/resolvers/slurm_gpus.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <vector>

#include "cohort/cluster/config_error.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

using Names = std::vector<std::string>;

Names visible_devices(const VariableReader& variables) {
  Names names;
  std::string name;
  for (const char c : variables.find("CUDA_VISIBLE_DEVICES").value_or("") + ",") {
    if (c != ',') {
      name += c;
    } else if (!name.empty()) {
      names.push_back(std::move(name));
      name.clear();
    }
  }
  return names;
}

// /dev/nvidia0 and so on.
int count_device_files() {
  int count = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator file("/dev", error), end; !error && file != end;
       file.increment(error)) {
    const std::string name = file->path().filename();
    const std::string prefix = "nvidia";
    const bool numbered = name.size() > prefix.size() && name.starts_with(prefix);
    count += numbered && std::all_of(name.begin() + static_cast<int>(prefix.size()), name.end(),
                                     [](char c) { return c >= '0' && c <= '9'; });
  }
  return count;
}

// "2", or with a kind before it: "a100:2".
std::optional<int> slurm_gpus_per_task(const VariableReader& variables) {
  const std::optional<std::string> text = variables.find("SLURM_GPUS_PER_TASK");
  if (!text) return std::nullopt;
  const auto count = parse_number<int32_t>(text->substr(text->rfind(':') + 1));
  if (!count || *count < 0) {
    throw InvalidArgumentError(
        str("Slurm: SLURM_GPUS_PER_TASK: must be a number, is ", quoted_start(*text)));
  }
  return *count;
}

Names devices_of_host(const GpuRequest& request, const Names& visible,
                      const VariableReader& variables) {
  int count = 0;
  if (request.per_node) {
    count = *request.per_node;
  } else if (!visible.empty()) {
    return visible;
  } else if (const auto on_node = variables.find_number("SLURM_GPUS_ON_NODE", 0)) {
    count = *on_node;
  } else {
    count = count_device_files();
  }
  if (count <= static_cast<int>(visible.size())) return {visible.begin(), visible.begin() + count};
  Names names;
  for (int number = 0; number < count; ++number) names.push_back(decimal_digits(number));
  return names;
}

std::string joined(const Names& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

}  // namespace

GpuShare share_gpus(const GpuRequest& request, const VariableReader& variables) {
  if (request.per_node && *request.per_node < 0) {
    throw InvalidArgumentError(
        str("Slurm: gpus_per_node is ", *request.per_node, "; it must not be negative"));
  }
  const Names visible = visible_devices(variables);
  const std::optional<int> bound = slurm_gpus_per_task(variables);
  // Slurm has given each task its own already.
  if (!request.per_node && !request.per_task && bound &&
      *bound == static_cast<int>(visible.size())) {
    return {.count = *bound};
  }
  const Names devices = devices_of_host(request, visible, variables);
  const int on_host = static_cast<int>(devices.size());
  const int per_task =
      request.per_task.value_or(bound.value_or(on_host / std::max(1, request.tasks_on_host)));
  if (per_task < 0) {
    throw InvalidArgumentError(
        str("Slurm: gpus_per_task is ", per_task, "; it must not be negative"));
  }
  if (int64_t{per_task} * request.tasks_on_host > on_host) {
    throw FailedPreconditionError(str("Slurm: ", request.tasks_on_host, " tasks of a host ask for ",
                                      per_task, " GPUs each; the host has ", on_host));
  }
  // There are fewer GPUs than tasks, and nobody said which task gets them: all tasks see them.
  const bool asked = request.per_task || bound;
  if (devices.empty() || (per_task == 0 && !asked)) return {};
  const auto first = devices.begin() + request.local_index * per_task;
  return {.count = per_task, .visible = joined({first, first + per_task})};
}

}  // namespace cohort::internal
