#include "cohort/cluster/membership/program.h"

#include <algorithm>

#include "cohort/cluster/rpc/text.h"
#include "cohort/core/bytes/fingerprint.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal::membership {
namespace {

constexpr size_t kMostShownBytes = 200;
constexpr size_t kMostReferences = 256;

std::string shown(std::string_view text) {
  if (text.size() <= kMostShownBytes) return quoted(rpc::printable(text));
  return quoted(rpc::printable(rpc::head_of(text, kMostShownBytes))) + "...";
}

std::string_view take_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace

std::string first_difference(std::string_view there, std::string_view here) {
  if (there == here) return "";
  for (int number = 1;; ++number) {
    const bool there_ends = there.empty();
    const bool here_ends = here.empty();
    if (there_ends && here_ends) return "the texts end differently";  // in a last newline
    const std::string_view there_line = take_line(there);
    const std::string_view here_line = take_line(here);
    if (!there_ends && !here_ends && there_line == here_line) continue;
    const std::string there_text = there_ends ? "missing" : shown(there_line);
    const std::string here_text = here_ends ? "missing" : shown(here_line);
    return str("line ", number, " is ", there_text, " there, ", here_text, " here");
  }
}

std::vector<std::string> ProgramReference::compare(const TaskId& task,
                                                   const std::vector<Section>& program) {
  std::vector<std::string> warnings;
  for (const Section& section : program) {
    const auto found = sections_.find(section.name);
    if (found == sections_.end()) continue;
    const Reference& reference = found->second;
    const std::string difference = first_difference(reference.section.text, section.text);
    if (difference.empty()) continue;
    std::string text =
        str("section ", quoted(rpc::printable(section.name)), " of the program of ", task,
            " (here) differs from that of ", reference.task, " (there): ", difference);
    if (section.strict || reference.section.strict) {
      throw FailedPreconditionError(text + "; run the same program in every task");
    }
    warnings.push_back(std::move(text));
  }
  for (const Section& section : program) {
    if (sections_.size() >= kMostReferences && sections_.count(section.name) == 0) {
      throw ResourceExhaustedError(
          str("the tasks' programs have more than ", kMostReferences, " sections"));
    }
    sections_.try_emplace(section.name, Reference{section, task});
  }
  return warnings;
}

void compare_cluster_specs(const TaskId& there_task, std::string_view there,
                           const TaskId& here_task, std::string_view here) {
  if (there == here) return;
  const auto described = [](const TaskId& task, std::string_view spec) {
    return str(task, " has ", rpc::printable(rpc::head_of(spec, 1024)),
               spec.size() > 1024 ? "..." : "", " (hash ", hex(fingerprint64(spec)), ")");
  };
  throw FailedPreconditionError(str("the tasks' cluster specs differ: ", described(here_task, here),
                                    ", ", described(there_task, there),
                                    "; give every task the same TF_CONFIG cluster"));
}

}  // namespace cohort::internal::membership
