// What the layers that learn ahead of training read: elements of a dataset, or batches of a tensor.
#pragma once

#include <string>

#include "cohort/core/function_ref.h"
#include "cohort/core/structure/structure.h"
#include "cohort/keras/layers/preprocessing/adapt_options.h"

namespace cohort {
namespace data {
class Dataset;
}

namespace internal {

// Calls learn(leaf) for each element. `where` names the layer.
// Errors: FailedPrecondition (in a step), InvalidArgument (a dataset without an end and no .steps;
// elements of several leaves), what reading the dataset throws.
void read_to_adapt(const data::Dataset& dataset, const keras::layers::AdaptOptions& options,
                   const std::string& where, FunctionRef<void(const Leaf& element)> learn);

// Calls learn(leaf) for every batch_size rows; for a scalar once.
// Errors: FailedPrecondition (in a step), InvalidArgument (batch_size below 1).
void read_to_adapt(const Leaf& data, const keras::layers::AdaptOptions& options,
                   const std::string& where, FunctionRef<void(const Leaf& batch)> learn);

// Errors: FailedPrecondition (the caller is in a step, where other replicas use the layer).
void check_adapts_outside_of_steps(const std::string& where);

}  // namespace internal
}  // namespace cohort
