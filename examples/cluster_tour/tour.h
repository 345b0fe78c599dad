// What the tasks of a cluster do together, one section after the other.
#pragma once

#include <cohort/cohort.h>

namespace cluster_tour {

struct Options {
  // Whether the last worker ends itself with SIGKILL, for the others to notice.
  bool lose_a_worker = true;
  int metrics_port = 0;  // where each task tells Prometheus who is there; 0: nowhere
};

// Goes through all sections; in each task of the cluster alike.
// Errors: those of Server and Coordination.
void tour(const cohort::distribute::cluster_resolver::ClusterResolver& resolver,
          const Options& options);

}  // namespace cluster_tour
