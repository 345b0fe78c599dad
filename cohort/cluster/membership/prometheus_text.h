// How a cluster is, as Prometheus reads it (text format 0.0.4).
#pragma once

#include <string>
#include <vector>

#include "cohort/cluster/membership/view.h"
#include "cohort/core/observe/monitoring.h"

namespace cohort::internal::membership {

// Values that the view does not have (ages, if another task coordinates) get no lines, nor do
// figures of tasks that are not alive.
std::string prometheus_text(const View& view);
// A counter with a label for each reason, the samples' only label; empty where there is none.
std::string prometheus_text(const std::vector<monitoring::Sample>& refused_connections);
// One histogram, with a label for each timing's name; empty where there is none.
std::string prometheus_text(const std::vector<monitoring::Timing>& timings);

}  // namespace cohort::internal::membership
