// Records and views for tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cohort/cluster/elastic/record.h"
#include "cohort/cluster/membership/view.h"

namespace cohort::internal::elastic {

inline TaskId worker(int index) { return {"worker", index}; }

// A worker of incarnation 10 + index.
inline RecordMember member(int index, int64_t step, const std::string& program = "p") {
  return {.task = worker(index),
          .incarnation = 10 + static_cast<uint64_t>(index),
          .attempt = 1,
          .standing = {.step = step, .reached = step, .program = program}};
}

inline Record record(int64_t number, std::vector<RecordMember> members) {
  return {.number = number, .service = 99, .generation = 1, .members = std::move(members)};
}

// A view with workers 0 to `tasks` - 1, of which those in `gone` are lost.
inline membership::View view(int tasks, const std::vector<int>& gone = {}) {
  membership::View all{.service = 99, .term = 1, .version = 3, .generation = 4};
  for (int i = 0; i < tasks; ++i) {
    all.members.push_back({.task = worker(i),
                           .incarnation = 10 + static_cast<uint64_t>(i),
                           .state = membership::TaskState::kAlive});
  }
  for (const int i : gone) all.members[size_t(i)].state = membership::TaskState::kLost;
  return all;
}

}  // namespace cohort::internal::elastic
