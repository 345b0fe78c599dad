#include "cohort/train/objects/object_graph_merge.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <vector>

namespace cohort::internal {
namespace {

class GraphMerge {
 public:
  GraphMerge(ObjectGraph& into, const ObjectGraph& from)
      : into_(into), from_(from), places_(from.nodes.size()) {}

  std::map<std::string, std::string> run() {
    // First what both know: an object may have a name that only one of them knows, too.
    walk([this](uint32_t parent, const ObjectGraph::Child& child) {
      const auto known = find_child(parent, child.name);
      if (known && !places_[child.node]) places_[child.node] = known;
    });
    walk([this](uint32_t parent, const ObjectGraph::Child& child) { add_child(parent, child); });
    for (uint32_t node = 0; node < from_.nodes.size(); ++node) {
      if (places_[node]) add_attributes(node, *places_[node]);
    }
    return std::move(keys_);
  }

 private:
  // Visits the children of all nodes of `from` that have a place, breadth first.
  template <class Visit>
  void walk(const Visit& visit) {
    places_[0] = 0;
    std::vector<bool> seen(from_.nodes.size());
    std::deque<uint32_t> pending = {0};
    seen[0] = true;
    while (!pending.empty()) {
      const uint32_t node = pending.front();
      pending.pop_front();
      for (const ObjectGraph::Child& child : from_.nodes[node].children) {
        visit(*places_[node], child);
        if (!places_[child.node] || seen[child.node]) continue;
        seen[child.node] = true;
        pending.push_back(child.node);
      }
    }
  }

  std::optional<uint32_t> find_child(uint32_t parent, const std::string& name) const {
    for (const ObjectGraph::Child& child : into_.nodes[parent].children) {
      if (child.name == name) return child.node;
    }
    return std::nullopt;
  }

  void add_child(uint32_t parent, const ObjectGraph::Child& child) {
    if (find_child(parent, child.name)) return;
    if (!places_[child.node]) {
      places_[child.node] = static_cast<uint32_t>(into_.nodes.size());
      into_.nodes.emplace_back();
    }
    into_.nodes[parent].children.push_back({child.name, *places_[child.node]});
  }

  void add_attributes(uint32_t node, uint32_t place) {
    auto& known = into_.nodes[place].attributes;
    for (const ObjectGraph::Attribute& attribute : from_.nodes[node].attributes) {
      const auto same = std::find_if(known.begin(), known.end(),
                                     [&](const auto& one) { return one.name == attribute.name; });
      keys_.emplace(attribute.checkpoint_key,
                    same == known.end() ? attribute.checkpoint_key : same->checkpoint_key);
      if (same == known.end()) known.push_back(attribute);
    }
  }

  ObjectGraph& into_;
  const ObjectGraph& from_;
  std::vector<std::optional<uint32_t>> places_;  // in `into`, by node of `from`
  std::map<std::string, std::string> keys_;
};

}  // namespace

std::map<std::string, std::string> merge_object_graph(ObjectGraph& into, const ObjectGraph& from) {
  return GraphMerge(into, from).run();
}

}  // namespace cohort::internal
