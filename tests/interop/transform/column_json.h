// Columns as columns.py writes them: {"dtype", "values": [text], "shape"}, ragged ones with
// "lengths" in place of "shape". Numbers are decimal texts, so that NaN, infinities and 64 bits get
// through; strings are hex.
#pragma once

#include <cohort/core/structure/structure.h>

#include "../probe.h"

namespace cohort::interop {

// Errors: InvalidArgument (another dtype than float32, int64 and string).
Structure column_of(const Json& json);
Json column_json(const Structure& column);

}  // namespace cohort::interop
