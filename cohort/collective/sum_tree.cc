#include "cohort/collective/sum_tree.h"

#include <algorithm>
#include <bit>

namespace cohort::collective {

std::vector<ReplicaRange> SumTree::nodes_of(ReplicaRange range) const {
  std::vector<ReplicaRange> nodes;
  for (int first = range.first; first < range.last;) {
    ReplicaRange node{first, first + 1};
    for (ReplicaRange larger = parent_of(node);
         larger.first == first && larger.last <= range.last && larger != node;
         larger = parent_of(node)) {
      node = larger;
    }
    nodes.push_back(node);
    first = node.last;
  }
  return nodes;
}

ReplicaRange SumTree::parent_of(ReplicaRange node) const {
  auto size = static_cast<int>(std::bit_ceil(static_cast<unsigned>(node.size())));
  while (true) {
    if (node.first == 0 && node.last == replicas_) return node;
    // A node that is cut off at the last replica may be its own parent, or several of them.
    size *= 2;
    const int first = node.first / size * size;
    const ReplicaRange parent{first, std::min(first + size, replicas_)};
    if (parent != node) return parent;
  }
}

Additions SumTree::additions_of(std::span<const ReplicaRange> nodes) const {
  Additions additions;
  std::vector<ReplicaRange> waiting;
  for (const ReplicaRange& node : nodes) {
    waiting.push_back(node);
    uint8_t count = 0;
    while (waiting.size() > 1) {
      const ReplicaRange right = waiting.back();
      const ReplicaRange left = waiting[waiting.size() - 2];
      const ReplicaRange both{left.first, right.last};
      if (parent_of(left) != both || parent_of(right) != both) break;
      waiting.pop_back();
      waiting.back() = both;
      ++count;
    }
    additions.push_back(count);
  }
  return additions;
}

Additions SumTree::additions_within(ReplicaRange node) const {
  std::vector<ReplicaRange> each;
  for (int id = node.first; id < node.last; ++id) each.push_back({id, id + 1});
  return additions_of(each);
}

std::vector<ReplicaRange> SumTree::divide(int hosts) const {
  std::vector<ReplicaRange> ranges;
  int first = 0;
  for (int host = 0; host < hosts; ++host) {
    const int last = first + replicas_ / hosts + (host < replicas_ % hosts ? 1 : 0);
    ranges.push_back({first, last});
    first = last;
  }
  return ranges;
}

}  // namespace cohort::collective
