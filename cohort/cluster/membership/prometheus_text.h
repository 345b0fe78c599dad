// How a cluster is, as Prometheus reads it (text format 0.0.4).
#pragma once

#include <string>

#include "cohort/cluster/membership/view.h"

namespace cohort::internal::membership {

// What the view does not say (ages, where another task coordinates) has no lines, nor have figures of
// tasks that are not alive.
std::string prometheus_text(const View& view);

}  // namespace cohort::internal::membership
