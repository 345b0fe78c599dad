// The rows of batches: how many there are in one, and how many batches they make.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/function_ref.h"
#include "cohort/core/structure/structure.h"

namespace cohort::internal {

// Calls visit(path, rows) for each leaf and each composite (core/composite.h); nullopt: it has
// none.
void for_each_rows(const Structure& batch,
                   FunctionRef<void(const std::string& path, std::optional<int64_t> rows)> visit);

// Errors: InvalidArgument (a scalar, leaves of different sizes, no leaves), naming the
// transformation and the leaves.
int64_t checked_rows(const char* transformation, const Structure& batch);

// The number of batches that `rows` rows (not negative) make.
inline int64_t num_batches(int64_t rows, int64_t batch_size, bool drop_remainder) {
  return rows / batch_size + (!drop_remainder && rows % batch_size != 0 ? 1 : 0);
}

}  // namespace cohort::internal
