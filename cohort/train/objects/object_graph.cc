#include "cohort/train/objects/object_graph.h"

#include <algorithm>

#include "cohort/core/bytes/wire.h"
#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

using Node = ObjectGraph::Node;

// Field numbers of TensorFlow's trackable_object_graph.proto.
enum NodeField : uint32_t { kChildren = 1, kAttributes = 2, kSlotVariables = 3, kHasValues = 5 };

constexpr size_t kFreeParts = 200'000;
constexpr size_t kBytesPerPart = 64;
constexpr std::string_view kAttributesPart = "/.ATTRIBUTES/";
constexpr std::string_view kValueSuffix = "/.ATTRIBUTES/VARIABLE_VALUE";

class GraphParser {
 public:
  GraphParser(std::string_view bytes, const std::string& file)
      : bytes_(bytes), what_(str("'", file, "': object graph")) {}

  ObjectGraph parse() {
    ObjectGraph graph;
    WireReader reader(bytes_, what_);
    while (reader.next()) {
      if (reader.field() != 1) continue;
      charge(reader);
      graph.nodes.push_back(parse_node(reader.bytes()));
    }
    if (graph.nodes.empty()) reader.fail("has no objects");
    check_references(graph, reader);
    return graph;
  }

 private:
  // Two bytes may stand for a hundred in memory.
  void charge(const WireReader& reader) {
    if (++parts_ > kFreeParts + bytes_.size() / kBytesPerPart) {
      reader.fail("has more parts than its size allows");
    }
  }

  Node parse_node(std::string_view bytes) {
    Node node;
    WireReader reader(bytes, what_);
    while (reader.next()) {
      switch (reader.field()) {
        case kChildren:
          charge(reader);
          node.children.push_back(parse_child(reader.bytes()));
          break;
        case kAttributes:
          charge(reader);
          node.attributes.push_back(parse_attribute(reader.bytes()));
          break;
        case kSlotVariables:
          charge(reader);
          node.slot_variables.push_back(parse_slot(reader.bytes()));
          break;
      }
    }
    return node;
  }

  static uint32_t node_id(const WireReader& reader, uint64_t number) {
    if (number > UINT32_MAX) reader.fail("a number of an object is out of range");
    return static_cast<uint32_t>(number);
  }

  ObjectGraph::Child parse_child(std::string_view bytes) {
    ObjectGraph::Child child;
    WireReader reader(bytes, what_);
    while (reader.next()) {
      if (reader.field() == 1) child.node = node_id(reader, reader.varint());
      if (reader.field() == 2) child.name = reader.bytes();
    }
    return child;
  }

  ObjectGraph::Attribute parse_attribute(std::string_view bytes) {
    ObjectGraph::Attribute attribute;
    WireReader reader(bytes, what_);
    while (reader.next()) {
      if (reader.field() == 1) attribute.name = reader.bytes();
      if (reader.field() == 2) attribute.full_name = reader.bytes();
      if (reader.field() == 3) attribute.checkpoint_key = reader.bytes();
    }
    return attribute;
  }

  ObjectGraph::SlotVariable parse_slot(std::string_view bytes) {
    ObjectGraph::SlotVariable slot;
    WireReader reader(bytes, what_);
    while (reader.next()) {
      if (reader.field() == 1) slot.original_variable = node_id(reader, reader.varint());
      if (reader.field() == 2) slot.slot_name = reader.bytes();
      if (reader.field() == 3) slot.slot_variable = node_id(reader, reader.varint());
    }
    return slot;
  }

  static void check_references(const ObjectGraph& graph, const WireReader& reader) {
    const auto check = [&](uint32_t node) {
      if (node >= graph.nodes.size()) {
        reader.fail(str("refers to object ", node, " of ", graph.nodes.size()));
      }
    };
    for (const Node& node : graph.nodes) {
      for (const auto& child : node.children) check(child.node);
      for (const auto& slot : node.slot_variables) {
        check(slot.original_variable);
        check(slot.slot_variable);
      }
    }
  }

  const std::string_view bytes_;
  const std::string what_;
  size_t parts_ = 0;
};

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

ObjectGraph parse_object_graph(std::string_view bytes, const std::string& file) {
  return GraphParser(bytes, file).parse();
}

std::string format_object_graph(const ObjectGraph& graph) {
  const std::vector<bool> has_values = nodes_with_values(graph);
  WireWriter out;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    WireWriter node;
    for (const auto& child : graph.nodes[i].children) {
      WireWriter reference;
      if (child.node != 0) reference.varint(1, child.node);
      reference.bytes(2, child.name);
      node.bytes(kChildren, reference.str());
    }
    for (const auto& attribute : graph.nodes[i].attributes) {
      WireWriter tensor;
      tensor.bytes(1, attribute.name);
      if (!attribute.full_name.empty()) tensor.bytes(2, attribute.full_name);
      tensor.bytes(3, attribute.checkpoint_key);
      node.bytes(kAttributes, tensor.str());
    }
    node.bytes(kHasValues, has_values[i] ? WireWriter().varint(1, 1).str() : "");
    out.bytes(1, node.str());
  }
  return out.str();
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
