#include "cohort/collective/sum_tree.h"

#include <c10/util/SmallVector.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "cohort/collective/slices.h"
#include "cohort/core/cpu/vector_clones.h"

namespace cohort::collective {
namespace {

// Elements that are added up at once: the sums that wait for others stay in the first-level cache.
constexpr int64_t kBlockBytes = 4096;

struct Waiting {
  const char* values;  // null: there are none
  char* own;           // the block that the sum is written to
};

}  // namespace

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

void add_in_tree(std::span<void* const> targets, std::span<const void* const> sources,
                 const Additions& additions, int64_t count, DType dtype) {
  check_can_add(dtype);
  const auto item = static_cast<int64_t>(c10::elementSize(dtype));
  const int64_t in_block = kBlockBytes / item;
  c10::SmallVector<Waiting, 16> waiting;
  // Deep enough for any tree: each sum that waits is of a node larger than the next.
  alignas(64) std::array<char, 33 * kBlockBytes> blocks;
  for (int64_t begin = 0; begin < count; begin += in_block) {
    const int64_t size = std::min(in_block, count - begin);
    const auto bytes = static_cast<size_t>(size * item);
    waiting.clear();
    for (size_t i = 0; i < sources.size(); ++i) {
      const auto* const source = static_cast<const char*>(sources[i]);
      waiting.push_back({source == nullptr ? nullptr : source + begin * item,
                         blocks.data() + waiting.size() * kBlockBytes});
      for (int k = 0; k < additions[i]; ++k) {
        const Waiting right = waiting.pop_back_val();
        Waiting& left = waiting.back();
        if (right.values == nullptr) continue;
        if (left.values == nullptr) {
          left.values = right.values;
          // What lies in the block of the right sum is overwritten by the next one.
          if (right.values == right.own) {
            std::memcpy(left.own, right.own, bytes);
            left.values = left.own;
          }
          continue;
        }
        const void* const both[] = {left.values, right.values};
        add_slices(left.own, both, size, dtype);
        left.values = left.own;
      }
    }
    const char* const sum = waiting.front().values;
    for (void* const target : targets) {
      char* const place = static_cast<char*>(target) + begin * item;
      if (sum == nullptr) {
        std::memset(place, 0, bytes);
      } else if (place != sum) {
        std::memmove(place, sum, bytes);
      }
    }
  }
}

}  // namespace cohort::collective
