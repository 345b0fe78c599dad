#include "cohort/train/objects/object_graph.h"

#include "cohort/core/bytes/fields.h"
#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

constexpr std::string_view kAttributesPart = "/.ATTRIBUTES/";
constexpr std::string_view kValueSuffix = "/.ATTRIBUTES/VARIABLE_VALUE";

void check_references(const ObjectGraph& graph, const std::string& what) {
  const auto check = [&](uint32_t node) {
    if (node < graph.nodes.size()) return;
    throw DataLossError(str(what, ": refers to object ", node, " of ", graph.nodes.size()));
  };
  for (const ObjectGraph::Node& node : graph.nodes) {
    for (const auto& child : node.children) check(child.node);
    for (const auto& slot : node.slot_variables) {
      check(slot.original_variable);
      check(slot.slot_variable);
    }
  }
}

// Whether a node or something below it has values; readers of TensorFlow expect to be told.
std::vector<bool> nodes_with_values(const ObjectGraph& graph) {
  std::vector<std::vector<uint32_t>> parents(graph.nodes.size());
  std::vector<bool> found(graph.nodes.size());
  std::vector<uint32_t> pending;
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    for (const auto& child : graph.nodes[i].children) parents[child.node].push_back(i);
    if (graph.nodes[i].attributes.empty()) continue;
    found[i] = true;
    pending.push_back(i);
  }
  while (!pending.empty()) {
    const uint32_t node = pending.back();
    pending.pop_back();
    for (const uint32_t parent : parents[node]) {
      if (found[parent]) continue;
      found[parent] = true;
      pending.push_back(parent);
    }
  }
  return found;
}

}  // namespace

// The numbers are those of TensorFlow's trackable_object_graph.proto.
void fields(auto& f, ObjectGraph::Child& child) {
  f(1, child.node);
  f(2, child.name, kAlways);
}

void fields(auto& f, ObjectGraph::Attribute& attribute) {
  f(1, attribute.name, kAlways);
  f(2, attribute.full_name);
  f(3, attribute.checkpoint_key, kAlways);
}

void fields(auto& f, ObjectGraph::SlotVariable& slot) {
  f(1, slot.original_variable);
  f(2, slot.slot_name);
  f(3, slot.slot_variable);
}

void fields(auto& f, ObjectGraph::BoolValue& flag) { f(1, flag.value); }

void fields(auto& f, ObjectGraph::Node& node) {
  f(1, node.children);
  f(2, node.attributes);
  f(3, node.slot_variables);
  f(5, node.has_values, kAlways);
}

void fields(auto& f, ObjectGraph& graph) { f(1, graph.nodes); }

ObjectGraph parse_object_graph(std::string_view bytes, const std::string& file) {
  const std::string what = str("'", file, "': object graph");
  // The file may be hostile, and a vector that grows takes up to three times its elements.
  constexpr size_t kMostPerByte = 1;
  auto graph = decode_fields<ObjectGraph>(bytes, what, kMostPerByte);
  if (graph.nodes.empty()) throw DataLossError(str(what, ": has no objects"));
  check_references(graph, what);
  return graph;
}

std::string format_object_graph(ObjectGraph graph) {
  const std::vector<bool> has_values = nodes_with_values(graph);
  for (size_t i = 0; i < has_values.size(); ++i) graph.nodes[i].has_values.value = has_values[i];
  return encode_fields(graph);
}

std::string escape_name(std::string_view name) {
  std::string escaped;
  for (const char c : name) {
    if (c == '.') {
      escaped += "..";
    } else if (c == '/') {
      escaped += ".S";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string attribute_key(std::string_view path, std::string_view attribute) {
  return str(path, kAttributesPart, escape_name(attribute));
}

std::string readable_key(std::string_view key) {
  if (key.ends_with(kValueSuffix)) key.remove_suffix(kValueSuffix.size());
  const size_t attributes = key.find(kAttributesPart);
  std::string readable;
  for (size_t i = 0; i < key.size(); ++i) {
    const bool escape = key[i] == '.' && i + 1 < key.size() && i != attributes + 1;
    if (escape && (key[i + 1] == '.' || key[i + 1] == 'S')) {
      readable += key[++i] == '.' ? '.' : '/';
    } else {
      readable += key[i];
    }
  }
  return readable;
}

}  // namespace cohort::internal
