// A column of one batch while a preprocessing function is applied.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/structure/leaf_type.h"
#include "cohort/core/structure/spec.h"
#include "cohort/core/structure/structure.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/transform/graph/vocabulary_table.h"

namespace cohort::internal {

enum class ColumnKind {
  kDense,       // values [rows, ..]
  kRagged,      // values [n] of all rows, and which are whose
  kStatistic,   // one value for all rows, of any shape
  kVocabulary,  // a table
};

struct ColumnValue {
  Leaf values = Leaf(Tensor());
  Tensor row_splits = {};  // int64 [rows + 1] of a ragged one, else undefined
  std::shared_ptr<const VocabularyTable> vocabulary = nullptr;

  bool is_ragged() const { return row_splits.defined(); }
};

// What is known of a column before there are values.
struct ColumnType {
  LeafType dtype = DType::Float;
  ColumnKind kind = ColumnKind::kDense;
  // The sizes of an element (a row of a dense column, a whole statistic); kUnknownDim where they
  // differ. Ragged: empty.
  std::vector<int64_t> shape = {};

  bool is_string() const { return dtype.is_string(); }
  bool is_ragged() const { return kind == ColumnKind::kRagged; }
  bool is_statistic() const { return kind == ColumnKind::kStatistic; }
  bool operator==(const ColumnType&) const = default;
};

inline LeafType leaf_type(const Leaf& leaf) {
  if (leaf.is_strings()) return cohort::string;
  return leaf.tensor().scalar_type();
}

// "a ragged column of strings", for errors.
std::string describe(const ColumnType& type);

}  // namespace cohort::internal
