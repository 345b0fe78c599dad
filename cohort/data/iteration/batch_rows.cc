#include "cohort/data/iteration/batch_rows.h"

#include "cohort/core/structure/composite.h"
#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

std::optional<int64_t> rows_of_node(const Structure& node) {
  switch (composite_kind(node)) {
    case Composite::kRagged:
      return RaggedTensor(node).nrows();
    case Composite::kRaggedRow:
      return std::nullopt;
    default:
      return node.leaf().dim() == 0 ? std::nullopt : std::optional(node.leaf().sizes()[0]);
  }
}

void visit_rows(const Structure& tree, const std::string& path,
                FunctionRef<void(const std::string& path, std::optional<int64_t> rows)> visit) {
  if (tree.is_leaf() || composite_kind(tree) != Composite::kNone) {
    return visit(path, rows_of_node(tree));
  }
  for (size_t i = 0; i < tree.size(); ++i) {
    visit_rows(tree[i], path + (tree.is_dict() ? key_path(tree.items()[i].first) : index_path(i)),
               visit);
  }
}

}  // namespace

void for_each_rows(const Structure& batch,
                   FunctionRef<void(const std::string& path, std::optional<int64_t> rows)> visit) {
  visit_rows(batch, "", visit);
}

int64_t checked_rows(const char* transformation, const Structure& batch) {
  std::string first_path;
  int64_t rows = -1;
  for_each_rows(batch, [&](const std::string& path, std::optional<int64_t> size) {
    if (!size) {
      throw InvalidArgumentError(
          str(transformation, ": the leaf at ", place(path), " is a scalar, which has no rows"));
    }
    if (rows >= 0 && *size != rows) {
      throw InvalidArgumentError(str(transformation, ": the leaf at ", place(path), " has ", *size,
                                     " rows, but the one at ", place(first_path), " has ", rows,
                                     "; if the elements are single examples, call `batch` on the "
                                     "dataset first"));
    }
    if (rows < 0) first_path = path;
    rows = *size;
  });
  if (rows < 0)
    throw InvalidArgumentError(str(transformation, ": an element without leaves has no rows"));
  return rows;
}

}  // namespace cohort::internal
