// Changes to a graph of nodes: new nodes where needed, the rest shared with the old graph.
//
//   // Shards before a prefetch that ends the pipeline, else at its end.
//   root = above(prefetch ? root->inputs()[0] : root, [](DataNodePtr node) { ... });
#pragma once

#include "cohort/core/function_ref.h"
#include "cohort/data/graph/node.h"

namespace cohort::internal {

// Rebuilds a graph from its sources up: `change` gets every node once, its inputs already changed,
// and returns what takes its place (the node itself to leave it). A node that several others share
// is changed once and stays shared. Nodes above no change keep their identity.
DataNodePtr rewrite(const DataNodePtr& root, FunctionRef<DataNodePtr(const DataNodePtr&)> change);

// The graph with make(target) in the place of `target`, and with make(input) in the place of each
// of its inputs.
DataNodePtr insert_above(const DataNodePtr& root, const DataNodePtr& target,
                         FunctionRef<DataNodePtr(const DataNodePtr&)> make);
DataNodePtr insert_below(const DataNodePtr& root, const DataNodePtr& target,
                         FunctionRef<DataNodePtr(const DataNodePtr&)> make);

// Calls visit(node) for every node once, inputs first.
void for_each_node(const DataNodePtr& root, FunctionRef<void(const DataNodePtr&)> visit);

}  // namespace cohort::internal
