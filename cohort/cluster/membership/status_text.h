// How a cluster is, for people and for programs.
#pragma once

#include <chrono>
#include <string>

#include "cohort/cluster/membership/view.h"

namespace cohort::internal::membership {

struct ClusterStatus {
  TaskId coordinator = {};
  std::string address = {};  // the coordinating task's
  std::chrono::system_clock::time_point time = {};
  View view = {};  // with ages and figures
};

// Whether all tasks are alive or have left in good order, and the group has not failed.
bool is_well(const View& view);

struct TableOptions {
  bool colours = false;
};
// A line about the cluster, and an aligned one for each task; it ends with a newline. What tasks
// say of themselves is shown as rpc::printable does.
std::string status_table(const ClusterStatus& status, const TableOptions& options = {});

// One JSON object, ASCII. Times are UTC, ages in seconds, incarnations hexadecimal texts; what is
// not known is null. `indent` -1: on one line.
std::string status_json(const ClusterStatus& status, int indent = 2);

}  // namespace cohort::internal::membership
