// Guide 000's examples of distributed input, with workers that are processes.
#pragma once

#include <cohort/cohort.h>

namespace multi_worker {

// Prints what this worker reads. Errors: InvalidArgument (the cluster has other than two workers).
void show_input(const cohort::distribute::MultiWorkerMirroredStrategy& strategy);

}  // namespace multi_worker
