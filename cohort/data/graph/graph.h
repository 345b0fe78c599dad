// The text forms of a graph of nodes: for people, and to tell whether a state fits a pipeline.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cohort/data/graph/node.h"

namespace cohort::internal {

// "batch(batch_size=2, drop_remainder=true)".
std::string describe_node(const DataNode& node);
// One node a line, inputs below and two spaces deeper.
std::string describe_graph(const DataNode& root);
// The same without transparent nodes that end the pipeline: what a state must match.
std::string describe_state_graph(const DataNode& root);
// describe_graph with what each node's elements are and how many there are. Never throws on account
// of a user function: what cannot be known is said to be unknown, and why.
std::string explain_graph(const DataNode& root);

// The first node in which two texts of describe_state_graph differ; nullopt where they are equal.
std::optional<std::string> first_graph_difference(std::string_view saved, std::string_view here);

}  // namespace cohort::internal
