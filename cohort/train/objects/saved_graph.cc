#include "cohort/train/objects/saved_graph.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/train/objects/trackable.h"

namespace cohort::internal {
namespace {

// Far beyond real ones: in a sparse file, which costs an attacker nothing, a string may have any
// size.
constexpr uint64_t kMostGraphBytes = uint64_t{1} << 30;

ObjectGraph read_graph(const BundleReader& bundle) {
  if (!bundle.contains(kObjectGraphKey)) {
    throw NotFoundError(str("checkpoint '", bundle.prefix(), "' has no object graph: it was not ",
                            "saved from objects (tf.train.Checkpoint), but by variable names"));
  }
  const BundleEntry& entry = bundle.entry(kObjectGraphKey);
  if (entry.type != BundleType::kString || !entry.shape.empty()) {
    throw DataLossError(str("checkpoint '", bundle.prefix(), "': its object graph is no string"));
  }
  if (entry.size > kMostGraphBytes) {
    throw DataLossError(str("checkpoint '", bundle.prefix(), "': its object graph has ", entry.size,
                            " bytes, more than any"));
  }
  return parse_object_graph(bundle.read_strings(kObjectGraphKey)[0],
                            bundle_index_path(bundle.prefix()));
}

using Child = ObjectGraph::Child;
using Node = ObjectGraph::Node;

const uint32_t* find_child(const Node& node, std::string_view name) {
  for (const Child& child : node.children) {
    if (child.name == name) return &child.node;
  }
  return nullptr;
}

bool is_optimizer(const Node& node) {
  return find_child(node, "_variables") != nullptr && find_child(node, "_iterations") != nullptr;
}

// nullptr: it has no value, or more than one.
const ObjectGraph::Attribute* value_of(const Node& node) {
  if (node.attributes.size() != 1 || node.attributes[0].name != train::kVariableValue) {
    return nullptr;
  }
  return &node.attributes[0];
}

// The nodes of a list, in order; nothing: it is none.
std::optional<std::vector<uint32_t>> members(const Node& list) {
  std::map<int64_t, uint32_t> by_number;
  for (const Child& child : list.children) {
    const auto number = parse_number<int64_t>(child.name);
    if (!number || !by_number.emplace(*number, child.node).second) return std::nullopt;
  }
  std::vector<uint32_t> nodes;
  for (const auto& [number, node] : by_number) nodes.push_back(node);
  return nodes;
}

struct PartName {
  std::string_view whole;
  int64_t number = 0;
};
// "table/part_2"; nothing: it is no part's.
std::optional<PartName> part_name(std::string_view name) {
  constexpr std::string_view kPart = "/part_";
  const size_t at = name.rfind(kPart);
  if (at == std::string_view::npos) return std::nullopt;
  const auto number = parse_number<int64_t>(name.substr(at + kPart.size()));
  if (!number || *number < 0) return std::nullopt;
  return PartName{name.substr(0, at), *number};
}

using Names = std::set<std::string, std::less<>>;

// The slots of one optimizer.
class PartitionedSlots {
 public:
  PartitionedSlots(ObjectGraph& graph, BundleReader& bundle, uint32_t optimizer)
      : graph_(graph), bundle_(bundle), optimizer_(optimizer) {}

  // `names`: of the variables that have values of their own.
  void join(const Names& names) {
    const auto slots = members(graph_.nodes[*find_child(graph_.nodes[optimizer_], "_variables")]);
    if (!slots) return;
    for (const std::vector<uint32_t>& parts : groups(*slots, names)) join(parts);
    if (first_of_.empty()) return;
    for (const Child& child : graph_.nodes[optimizer_].children) number(graph_.nodes[child.node]);
  }

 private:
  // Groups the slots that are parts of one, by the name of the whole. Other variables may have the
  // same name: with number 0 the next one begins.
  std::vector<std::vector<uint32_t>> groups(const std::vector<uint32_t>& slots,
                                            const Names& names) const {
    std::map<std::string_view, std::vector<uint32_t>> open;
    std::vector<std::vector<uint32_t>> found;
    const auto close = [&](std::vector<uint32_t>& parts) {
      if (parts.size() > 1) found.push_back(parts);
      parts.clear();
    };
    for (const uint32_t node : slots) {
      const ObjectGraph::Attribute* value = value_of(graph_.nodes[node]);
      const auto part = value == nullptr ? std::nullopt : part_name(value->full_name);
      if (!part || has_own_variable(value->full_name, names)) continue;
      std::vector<uint32_t>& parts = open[part->whole];
      if (static_cast<size_t>(part->number) != parts.size()) close(parts);
      if (static_cast<size_t>(part->number) == parts.size()) parts.push_back(node);
    }
    for (auto& [whole, parts] : open) close(parts);
    return found;
  }

  // A slot's name ends with its variable's.
  static bool has_own_variable(std::string_view slot, const Names& names) {
    for (size_t at = slot.find('/'); at != std::string_view::npos; at = slot.find('/', at + 1)) {
      if (names.contains(slot.substr(at + 1))) return true;
    }
    return false;
  }

  void join(const std::vector<uint32_t>& parts) {
    std::vector<std::string> keys;
    for (const uint32_t part : parts) {
      keys.push_back(graph_.nodes[part].attributes[0].checkpoint_key);
    }
    if (!bundle_.join_rows(keys)) return;
    ObjectGraph::Attribute& whole = graph_.nodes[parts[0]].attributes[0];
    whole.full_name = std::string(part_name(whole.full_name)->whole);
    for (const uint32_t part : parts) {
      first_of_[part] = parts[0];
      if (part != parts[0]) graph_.nodes[part].attributes.clear();
    }
  }

  // Names a list's members anew, each whole once.
  void number(Node& list) const {
    const auto nodes = members(list);
    if (!nodes) return;
    std::set<uint32_t> seen;
    std::vector<Child> children;
    for (const uint32_t node : *nodes) {
      const auto part = first_of_.find(node);
      if (part != first_of_.end() && !seen.insert(part->second).second) continue;
      children.push_back(
          {decimal_digits(children.size()), part == first_of_.end() ? node : part->second});
    }
    list.children = std::move(children);
  }

  ObjectGraph& graph_;
  BundleReader& bundle_;
  const uint32_t optimizer_;
  std::map<uint32_t, uint32_t> first_of_;  // of each part
};

}  // namespace

ObjectGraph read_saved_graph(BundleReader& bundle) {
  ObjectGraph graph = read_graph(bundle);
  std::vector<uint32_t> optimizers;
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    if (is_optimizer(graph.nodes[i])) optimizers.push_back(i);
  }
  if (optimizers.empty()) return graph;
  std::set<uint32_t> slots;
  for (const uint32_t optimizer : optimizers) {
    const Node& list = graph.nodes[*find_child(graph.nodes[optimizer], "_variables")];
    for (const Child& child : list.children) slots.insert(child.node);
  }
  Names names;
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    const ObjectGraph::Attribute* value = value_of(graph.nodes[i]);
    if (value == nullptr || slots.contains(i) || !part_name(value->full_name)) continue;
    names.insert(value->full_name);
  }
  for (const uint32_t optimizer : optimizers) {
    PartitionedSlots(graph, bundle, optimizer).join(names);
  }
  return graph;
}

}  // namespace cohort::internal
