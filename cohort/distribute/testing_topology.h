// For tests: how replicas are divided into tasks.
#pragma once

namespace cohort::distribute {

struct Topology {
  int tasks;
  int replicas_each;
  int replicas() const { return tasks * replicas_each; }
};

}  // namespace cohort::distribute
