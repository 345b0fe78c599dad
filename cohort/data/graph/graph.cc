#include "cohort/data/graph/graph.h"

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

std::string describe_spec(const DataNode& node) {
  try {
    return str(node.element_spec());
  } catch (const std::exception& error) {
    return str("<unknown: ", error.what(), ">");
  }
}

std::string describe_cardinality(const DataNode& node) {
  int64_t count = data::kUnknownCardinality;
  try {
    count = node.cardinality();
  } catch (const std::exception&) {  // its text stands in the spec already
  }
  if (count == data::kInfiniteCardinality) return "infinitely many elements";
  if (count == data::kUnknownCardinality) return "unknown number of elements";
  return count == 1 ? "1 element" : str(count, " elements");
}

template <class Line>
void visit(const DataNode& node, size_t depth, std::string& text, const Line& line) {
  text.append(2 * depth, ' ');
  text += line(node);
  text += '\n';
  for (const DataNodePtr& input : node.inputs()) visit(*input, depth + 1, text, line);
}

// Takes the first line off `text`.
std::string_view take_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::string named(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return line.empty() ? "nothing" : quoted(line);
}

}  // namespace

std::string describe_node(const DataNode& node) {
  std::string text = node.name() + '(';
  const char* separator = "";
  for (const auto& [name, value] : node.attributes()) {
    text += separator + name + '=' + value;
    separator = ", ";
  }
  return text + ')';
}

std::string describe_graph(const DataNode& root) {
  std::string text;
  visit(root, 0, text, describe_node);
  return text;
}

std::string describe_state_graph(const DataNode& root) {
  const DataNode* node = &root;
  while (node->is_transparent()) node = node->inputs()[0].get();
  return describe_graph(*node);
}

std::string explain_graph(const DataNode& root) {
  std::string text;
  visit(root, 0, text, [](const DataNode& node) {
    return str(describe_node(node), ": ", describe_spec(node), ", ", describe_cardinality(node));
  });
  return text;
}

std::optional<std::string> first_graph_difference(std::string_view saved, std::string_view here) {
  while (!saved.empty() || !here.empty()) {
    const std::string_view saved_line = take_line(saved), here_line = take_line(here);
    if (saved_line == here_line) continue;
    return str("where it has ", named(saved_line), ", this one has ", named(here_line));
  }
  return std::nullopt;
}

}  // namespace cohort::internal
