// Guide 004's training, in step on all workers.
#pragma once

#include <cohort/cohort.h>

#include "options.h"

namespace multi_worker {

// Every task calls it; the chief prints how the training goes, every task its digest at the end.
void train(const cohort::distribute::MultiWorkerMirroredStrategy& strategy, const Options& options);

}  // namespace multi_worker
