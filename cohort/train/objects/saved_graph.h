// The object graph of a checkpoint, in which the slots of Keras's optimizers are whole.
#pragma once

#include "cohort/train/bundle/bundle_reader.h"
#include "cohort/train/objects/object_graph.h"

namespace cohort::internal {

// TensorFlow saves a variable that its ParameterServerStrategy has divided as one, but its slots as
// a tensor for each part, which are told by their variables' names: "Adam/m/table/part_0" and so
// on. In the result, and in `bundle` (BundleReader::join_rows), they are one, so that variables
// that are divided otherwise, or not at all, find them. Slots of variables that the checkpoint has
// under such names stay as they are.
// Errors: NotFound (a checkpoint without an object graph), DataLoss.
ObjectGraph read_saved_graph(BundleReader& bundle);

}  // namespace cohort::internal
