#include "cohort/data/graph/rewrite.h"

#include <unordered_map>

namespace cohort::internal {
namespace {

// `change` gets the old node too: identity says which it was.
using Change = FunctionRef<DataNodePtr(const DataNodePtr& old_node, const DataNodePtr& node)>;
using Changed = std::unordered_map<const DataNode*, DataNodePtr>;

DataNodePtr rebuild(const DataNodePtr& node, Change change, Changed& changed) {
  if (const auto found = changed.find(node.get()); found != changed.end()) return found->second;
  std::vector<DataNodePtr> inputs;
  inputs.reserve(node->inputs().size());
  for (const DataNodePtr& input : node->inputs()) {
    inputs.push_back(rebuild(input, change, changed));
  }
  const DataNodePtr rebuilt =
      inputs == node->inputs() ? node : node->with_inputs(std::move(inputs));
  return changed[node.get()] = change(node, rebuilt);
}

DataNodePtr rebuild(const DataNodePtr& root, Change change) {
  Changed changed;
  return rebuild(root, change, changed);
}

}  // namespace

DataNodePtr rewrite(const DataNodePtr& root, FunctionRef<DataNodePtr(const DataNodePtr&)> change) {
  return rebuild(root, [&](const DataNodePtr&, const DataNodePtr& node) { return change(node); });
}

DataNodePtr insert_above(const DataNodePtr& root, const DataNodePtr& target,
                         FunctionRef<DataNodePtr(const DataNodePtr&)> make) {
  return rebuild(root, [&](const DataNodePtr& old_node, const DataNodePtr& node) {
    return old_node == target ? make(node) : node;
  });
}

DataNodePtr insert_below(const DataNodePtr& root, const DataNodePtr& target,
                         FunctionRef<DataNodePtr(const DataNodePtr&)> make) {
  return rebuild(root, [&](const DataNodePtr& old_node, const DataNodePtr& node) {
    if (old_node != target) return node;
    std::vector<DataNodePtr> inputs;
    for (const DataNodePtr& input : node->inputs()) inputs.push_back(make(input));
    return node->with_inputs(std::move(inputs));
  });
}

void for_each_node(const DataNodePtr& root, FunctionRef<void(const DataNodePtr&)> visit) {
  rewrite(root, [&](const DataNodePtr& node) {
    visit(node);
    return node;
  });
}

}  // namespace cohort::internal
