// The answer to "server/where".
#pragma once

#include <string>
#include <string_view>

#include "cohort/core/program/task_id.h"

namespace cohort::internal {

struct WhereReply {
  TaskId self = {};  // who answers
  TaskId coordinator = {};
  std::string address = {};  // the coordinating task's, as the cluster knows it

  std::string encode() const;
  // Errors: DataLoss, InvalidArgument.
  static WhereReply decode(std::string_view bytes);
};

}  // namespace cohort::internal
