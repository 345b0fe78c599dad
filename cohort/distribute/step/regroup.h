// Structures whose leaves may be distributed values, for code that handles results of replicas by
// itself.
//
//   auto merged = regroup({tuple(a0, shared), tuple(a1, shared)});  // what two replicas returned
//   merged[0].per_replica();                                        // PerReplica: a0, a1
//   merged[1].plain();                                              // `shared` itself
//   select_replica(1, merged).to_structure();                       // (a1, shared)
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/structure.h"
#include "cohort/distribute/values/values.h"
#include "cohort/distribute/variables/variable.h"

namespace cohort::distribute {

// A tree of tuples and dicts. A leaf is a plain one, the same for all replicas; a PerReplica or
// Mirrored of leaves; or a variable.
// Thread safety: as std::vector.
class COHORT_API DistributedStructure {
 public:
  using Tuple = std::vector<DistributedStructure>;
  using Dict = std::vector<std::pair<std::string, DistributedStructure>>;

  // The tree of the structure, with plain leaves.
  DistributedStructure(const Structure& plain);
  DistributedStructure(Tensor plain) : node_(Leaf(std::move(plain))) {}
  DistributedStructure(StringTensor plain) : node_(Leaf(std::move(plain))) {}
  // The tree of the components, with a PerReplica or Mirrored for each of its leaves.
  // Errors: InvalidArgument (no components; their forms differ).
  DistributedStructure(const PerReplica<Structure>& value);
  DistributedStructure(const Mirrored<Structure>& value);
  DistributedStructure(const PerReplica<Tensor>& value);
  DistributedStructure(const Mirrored<Tensor>& value);
  DistributedStructure(Variable variable) : node_(std::move(variable)) {}
  static DistributedStructure make_tuple(Tuple members);
  // Errors: InvalidArgument (a key twice).
  static DistributedStructure make_dict(Dict members);

  bool is_tuple() const { return std::holds_alternative<Tuple>(node_); }
  bool is_dict() const { return std::holds_alternative<Dict>(node_); }
  bool is_plain() const { return std::holds_alternative<Leaf>(node_); }
  bool is_per_replica() const { return std::holds_alternative<PerReplica<Structure>>(node_); }
  bool is_mirrored() const { return std::holds_alternative<Mirrored<Structure>>(node_); }
  bool is_variable() const { return std::holds_alternative<Variable>(node_); }

  // What it is. Errors: InvalidArgument (it is something else).
  const Tuple& members() const { return node<Tuple>("a tuple"); }
  const Dict& items() const { return node<Dict>("a dict"); }
  const Leaf& plain() const { return node<Leaf>("a plain leaf"); }
  const PerReplica<Structure>& per_replica() const {
    return node<PerReplica<Structure>>("a PerReplica");
  }
  const Mirrored<Structure>& mirrored() const { return node<Mirrored<Structure>>("a Mirrored"); }
  const Variable& variable() const { return node<Variable>("a variable"); }

  // Errors: InvalidArgument (not a tuple; not a dict), OutOfRange, NotFound.
  const DistributedStructure& operator[](size_t i) const;
  const DistributedStructure& operator[](int i) const { return (*this)[static_cast<size_t>(i)]; }
  const DistributedStructure& operator[](std::string_view key) const;
  const DistributedStructure& operator[](const char* key) const {
    return (*this)[std::string_view(key)];
  }

  // Errors: InvalidArgument (a leaf is distributed, or a variable: select_replica first).
  Structure to_structure() const;

 private:
  using Node =
      std::variant<Leaf, PerReplica<Structure>, Mirrored<Structure>, Variable, Tuple, Dict>;

  explicit DistributedStructure(Node node) : node_(std::move(node)) {}
  template <class T>
  const T& node(const char* wanted) const {
    if (const T* found = std::get_if<T>(&node_)) return *found;
    throw_not(wanted);
  }
  [[noreturn]] void throw_not(const char* wanted) const;

  Node node_;
};

COHORT_API std::ostream& operator<<(std::ostream& out, const DistributedStructure& structure);

enum class RegroupAs { PER_REPLICA, MIRRORED };

struct RegroupOptions {
  // The kind of value in which leaves are wrapped that differ between the replicas.
  RegroupAs wrap = RegroupAs::PER_REPLICA;
  // Wraps also what is one object on all replicas (but not variables).
  bool always_wrap = false;
};

// What the replicas have, one structure each in replica order, as one structure. A leaf that is the
// same object on all replicas, or the same variable, stays as it is; others are wrapped. With one
// replica nothing is wrapped.
// Errors: InvalidArgument (no values; forms differ, with the place; a leaf that is distributed
// already, or a variable on some replicas only).
COHORT_API DistributedStructure regroup(const std::vector<DistributedStructure>& values,
                                        const RegroupOptions& options = {});

// What local replica `replica` has of it: its components; plain leaves and variables as they are.
// Errors: OutOfRange.
COHORT_API DistributedStructure select_replica(size_t replica,
                                               const DistributedStructure& structure);
// The same, where all replicas must have the same.
// Errors: OutOfRange, InvalidArgument (a PerReplica or an ON_READ variable: names the place).
COHORT_API DistributedStructure select_replica_mirrored(size_t replica,
                                                        const DistributedStructure& structure);
template <class T>
const T& select_replica(size_t replica, const PerReplica<T>& value) {
  return value.value(replica);
}

}  // namespace cohort::distribute
