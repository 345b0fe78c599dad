// Whether the tasks of a cluster run the same program: named sections, compared line by line.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/cluster/membership/messages.h"

namespace cohort::internal::membership {

// "line 3 is 'dense/kernel [20, 4]' there, 'dense/kernel [20, 8]' here"; empty where they are
// equal.
std::string first_difference(std::string_view there, std::string_view here);

// The sections that each task's are compared with: of each name, the first that came.
// Thread safety: none.
class ProgramReference {
 public:
  // Returns warnings of sections that differ where neither side is strict.
  // Errors: FailedPrecondition (names the first section and its first difference, and both tasks);
  // then nothing was taken over.
  std::vector<std::string> compare(const TaskId& task, const std::vector<Section>& program);

 private:
  struct Reference {
    Section section;
    TaskId task;
  };
  std::map<std::string, Reference, std::less<>> sections_;
};

// Errors: FailedPrecondition (the specs differ; both texts, both hashes).
void compare_cluster_specs(const TaskId& there_task, std::string_view there,
                           const TaskId& here_task, std::string_view here);

}  // namespace cohort::internal::membership
