#include "tools/object_tree.h"

#include <vector>

#include "tools/printable.h"

namespace cohort::tools {
namespace {

using internal::ObjectGraph;

constexpr std::string_view kValue = "VARIABLE_VALUE";
constexpr size_t kLongestName = 200;
constexpr size_t kLongestPlace = 300;

class ObjectTree {
 public:
  ObjectTree(const ObjectGraph& graph, const DescribeValue& describe, std::ostream& out)
      : graph_(graph), describe_(describe), out_(out), places_(graph.nodes.size()) {
    find_places();
  }

  void print() {
    std::vector<Frame> open = {{.node = 0}};
    print_values(0, 0);
    while (!open.empty()) {
      Frame& frame = open.back();
      const ObjectGraph::Node& node = graph_.nodes[frame.node];
      if (frame.next_child == node.children.size()) {
        print_slots(node, static_cast<uint32_t>(open.size() - 1));
        open.pop_back();
        continue;
      }
      const ObjectGraph::Child& child = node.children[frame.next_child++];
      if (print_child(child, static_cast<uint32_t>(open.size() - 1))) {
        open.push_back({.node = child.node});
      }
    }
    if (too_deep_ > 0) {
      out_ << counted(too_deep_, "object") << " more than " << kDeepestObject
           << " levels down not shown\n";
    }
    print_unreached();
  }

 private:
  struct Frame {
    uint32_t node = 0;
    size_t next_child = 0;
  };
  // Of an object: the child reference below which it is printed.
  struct Place {
    const ObjectGraph::Child* reference = nullptr;
    uint32_t parent = 0;
    uint32_t depth = 0;  // the root's children: 1
    bool reached = false;
  };

  // Breadth first, so that ways to the root are the shortest.
  void find_places() {
    std::vector<uint32_t> pending = {0};
    places_[0].reached = true;
    for (size_t i = 0; i < pending.size(); ++i) {
      for (const ObjectGraph::Child& child : graph_.nodes[pending[i]].children) {
        Place& place = places_[child.node];
        if (place.reached) continue;
        const uint32_t depth = places_[pending[i]].depth + 1;
        place = {.reference = &child, .parent = pending[i], .depth = depth, .reached = true};
        if (depth > kDeepestObject) ++too_deep_;
        pending.push_back(child.node);
      }
    }
  }

  std::string place_text(uint32_t node) const {
    if (node == 0) return "the root";
    std::string text;
    for (; node != 0; node = places_[node].parent) {
      if (!places_[node].reached) return "an object that nothing leads to";
      const std::string name = printable(places_[node].reference->name, kLongestName);
      if (text.size() + name.size() > kLongestPlace) return ".../" + text;
      text.insert(0, text.empty() ? name : name + "/");
    }
    return text;
  }

  std::ostream& line(uint32_t depth) { return out_ << std::string(size_t{2} * depth, ' '); }

  // Whether its children come next.
  bool print_child(const ObjectGraph::Child& child, uint32_t depth) {
    if (depth >= kDeepestObject) return false;
    line(depth) << printable(child.name, kLongestName);
    if (places_[child.node].reference != &child) {
      out_ << " -> " << place_text(child.node) << '\n';
      return false;
    }
    for (const auto& attribute : graph_.nodes[child.node].attributes) {
      if (attribute.name == kValue) out_ << ": " << describe_(attribute.checkpoint_key);
    }
    out_ << '\n';
    print_values(child.node, depth + 1);
    return true;
  }

  // Those that are not on the object's own line.
  void print_values(uint32_t node, uint32_t depth) {
    for (const auto& attribute : graph_.nodes[node].attributes) {
      if (attribute.name == kValue && node != 0) continue;
      line(depth) << printable(attribute.name, kLongestName) << ": "
                  << describe_(attribute.checkpoint_key) << '\n';
    }
  }

  void print_slots(const ObjectGraph::Node& node, uint32_t depth) {
    for (const auto& slot : node.slot_variables) {
      line(depth) << "slot " << printable(slot.slot_name, kLongestName) << " of "
                  << place_text(slot.original_variable);
      for (const auto& attribute : graph_.nodes[slot.slot_variable].attributes) {
        out_ << ": " << describe_(attribute.checkpoint_key);
      }
      out_ << '\n';
      places_[slot.slot_variable].reached = true;
    }
  }

  void print_unreached() {
    uint64_t unreached = 0;
    for (const Place& place : places_) unreached += place.reached ? 0 : 1;
    if (unreached > 0) out_ << counted(unreached, "object") << " that nothing leads to\n";
  }

  const ObjectGraph& graph_;
  const DescribeValue& describe_;
  std::ostream& out_;
  std::vector<Place> places_;
  uint64_t too_deep_ = 0;
};

}  // namespace

void print_object_tree(const ObjectGraph& graph, const DescribeValue& describe, std::ostream& out) {
  ObjectTree(graph, describe, out).print();
}

}  // namespace cohort::tools
