#include "cohort/data/iteration/batch_rows.h"

#include "cohort/core/text.h"

namespace cohort::internal {

int64_t checked_rows(const char* transformation, const Structure& batch) {
  std::string first_path;
  int64_t rows = -1;
  batch.for_each_with_path([&](const std::string& path, const Leaf& leaf) {
    const std::vector<int64_t> shape = leaf.sizes();
    if (shape.empty()) {
      throw InvalidArgumentError(
          str(transformation, ": the leaf at ", place(path), " is a scalar, which has no rows"));
    }
    if (rows >= 0 && shape[0] != rows) {
      throw InvalidArgumentError(str(transformation, ": the leaf at ", place(path), " has ",
                                     shape[0], " rows, but the one at ", place(first_path), " has ",
                                     rows));
    }
    if (rows < 0) first_path = path;
    rows = shape[0];
  });
  if (rows < 0)
    throw InvalidArgumentError(str(transformation, ": an element without leaves has no rows"));
  return rows;
}

}  // namespace cohort::internal
