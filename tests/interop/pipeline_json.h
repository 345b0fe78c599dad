// Input pipelines and their elements as JSON: see read_pipeline in probe.h.
#pragma once

#include <cohort/data/dataset.h>

#include "probe.h"

namespace cohort::interop {

// Errors: InvalidArgument (no such operation), those of the operations.
data::Dataset build_pipeline(const Json& node);
Json element_json(const Structure& element);

}  // namespace cohort::interop
