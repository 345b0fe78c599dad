// The columns of a batch, between structures and values.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/structure/spec.h"
#include "cohort/core/structure/structure.h"
#include "cohort/transform/graph/value.h"

namespace cohort::internal {

// A leaf, a RaggedTensor, a sparse matrix (a row's values in their order), or a VarLenFeature's
// {"values", "lengths"}. nullopt: none of these.
std::optional<ColumnValue> column_of(const Structure& structure);
// A leaf or a RaggedTensor.
Structure column_structure(const ColumnValue& value);

// The columns that a dataset with this spec gives, in its order.
// Errors: InvalidArgument (no dict; a member that is no column, or no batch: names it).
std::vector<std::pair<std::string, ColumnType>> column_types(const StructureSpec& spec);

// Errors: InvalidArgument (what a column holds is not of `type`; another number of rows than
// `rows`, unless that is -1: names the column).
void check_column(const std::string& name, const ColumnValue& value, const ColumnType& type,
                  int64_t& rows);

}  // namespace cohort::internal
