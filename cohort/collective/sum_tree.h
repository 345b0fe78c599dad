// The order in which the values of replicas are added up where a sum must not depend on which task
// hosts which replica: a binary tree over replica ids, fixed by their number alone.
//
//   of 6:          [0, 6)
//             [0, 4)     [4, 6)
//         [0, 2) [2, 4)
//
// A node holds a power of two of ids that begins at a multiple of it, cut off at the last replica.
// Its value is that of its left half plus that of its right half. A half that has no replica, or
// whose replicas all bring nothing, is left out. A task that hosts replicas [first, last) adds up
// the largest nodes that lie in this range, at most two of each size, and sends their values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cohort::collective {

// Replicas [first, last).
struct ReplicaRange {
  int first = 0;
  int last = 0;

  int size() const { return last - first; }
  friend bool operator==(const ReplicaRange&, const ReplicaRange&) = default;
};

// How to add up a row of values: after value i was taken, the last two sums that are not part of
// another are added, as often as entry i says. At the end one is left.
using Additions = std::vector<uint8_t>;

// Immutable.
class SumTree {
 public:
  // replicas: at least 1.
  explicit SumTree(int replicas) : replicas_(replicas) {}

  int replicas() const { return replicas_; }
  // The largest nodes that together hold the range, in rising order.
  std::vector<ReplicaRange> nodes_of(ReplicaRange range) const;
  // How to add up the values of `nodes`, which follow one another and together are one node.
  Additions additions_of(std::span<const ReplicaRange> nodes) const;
  // The same for the values of the single replicas of a node.
  Additions additions_within(ReplicaRange node) const;
  // Divides all replicas among so many hosts, as equally as possible: host i gets range i.
  std::vector<ReplicaRange> divide(int hosts) const;

 private:
  // The smallest node that holds more than this one; itself if there is none.
  ReplicaRange parent_of(ReplicaRange node) const;

  const int replicas_;
};

}  // namespace cohort::collective
