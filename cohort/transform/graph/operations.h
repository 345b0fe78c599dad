// The operations of a preprocessing function, by the names that files know.
#pragma once

#include <span>
#include <string_view>
#include <utility>

#include "cohort/transform/graph/node.h"

namespace cohort::internal {

// Checks attributes and inputs, and returns what computes a batch.
// Errors: InvalidArgument (says what is taken).
using MakeEvaluation = EvaluateColumn (*)(const keras::Config& attributes,
                                          std::span<const ColumnType> inputs);
struct NamedOperation {
  std::string_view name;
  MakeEvaluation make;
};

// Errors: InvalidArgument (there is none of this name, as in a file of a later version).
MakeEvaluation find_operation(std::string_view name);

// The lists that it looks through.
std::span<const NamedOperation> numeric_operations();
std::span<const NamedOperation> string_operations();
std::span<const NamedOperation> row_operations();     // on the values of a row together
std::span<const NamedOperation> lookup_operations();  // with what an analysis has found
std::span<const NamedOperation> mapped_functions();   // functions of the program

// --- What operations are made of ---

// Errors: InvalidArgument (no dtype has this name).
DType dtype_of_name(const std::string& name);
// Errors: InvalidArgument (another number of inputs).
void take_inputs(std::span<const ColumnType> inputs, size_t count);
// Errors: InvalidArgument (inputs that are not all numbers; strings).
void take_numbers(std::span<const ColumnType> inputs);
void take_strings(const ColumnType& input);
void take_ragged(const ColumnType& input);
// Columns must fit each other element by element: of one rank, or ragged in the same way; and
// statistics that are smaller. Errors: InvalidArgument.
void take_matching(std::span<const ColumnType> inputs);
// The row splits that the ragged ones of matching columns share; undefined if none is ragged.
// Errors: InvalidArgument (they differ).
Tensor common_row_splits(std::span<const ColumnValue> inputs);

}  // namespace cohort::internal
