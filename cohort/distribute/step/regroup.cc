#include "cohort/distribute/step/regroup.h"

#include <algorithm>
#include <functional>
#include <ostream>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::distribute {
namespace {

using internal::place;
using internal::str;
using Tuple = DistributedStructure::Tuple;
using Dict = DistributedStructure::Dict;

const char* kind_of(const DistributedStructure& value) {
  if (value.is_tuple()) return "a tuple";
  if (value.is_dict()) return "a dict";
  if (value.is_plain()) return "a plain leaf";
  if (value.is_per_replica()) return "a PerReplica";
  return value.is_mirrored() ? "a Mirrored" : "a variable";
}

bool is_same_object(const Leaf& a, const Leaf& b) {
  if (a.is_tensor() != b.is_tensor()) return false;
  if (a.is_tensor()) return a.tensor().is_same(b.tensor());
  return a.strings().data() == b.strings().data() && a.strings().sizes() == b.strings().sizes();
}

DistributedStructure wrapped(const std::vector<const DistributedStructure*>& leaves, RegroupAs as) {
  PerReplica<Structure>::Values values;
  for (const DistributedStructure* leaf : leaves) values.emplace_back(leaf->plain());
  if (as == RegroupAs::MIRRORED) return Mirrored<Structure>(std::move(values));
  return PerReplica<Structure>(std::move(values));
}

class Regrouper {
 public:
  explicit Regrouper(const RegroupOptions& options) : options_(options) {}

  // `values`: what each replica has at `path`.
  DistributedStructure operator()(const std::vector<const DistributedStructure*>& values,
                                  const std::string& path) const {
    const DistributedStructure& first = *values[0];
    for (size_t i = 1; i < values.size(); ++i) {
      if (std::string_view(kind_of(*values[i])) == kind_of(first)) continue;
      differ(path, i, str(kind_of(first), " on replica 0, but ", kind_of(*values[i])));
    }
    if (first.is_tuple()) return tuple(values, path);
    if (first.is_dict()) return dict(values, path);
    if (first.is_variable()) return variable(values, path);
    if (first.is_plain()) return leaf(values);
    throw InvalidArgumentError(str("regroup: at ", place(path), " there is ", kind_of(first),
                                   " already; select_replica first"));
  }

 private:
  [[noreturn]] static void differ(const std::string& path, size_t replica,
                                  const std::string& what) {
    throw InvalidArgumentError(str("regroup: the replicas' values differ in form at ", place(path),
                                   ": ", what, " on replica ", replica));
  }

  // What each has below: below(value).
  template <class Below>
  DistributedStructure at(const std::vector<const DistributedStructure*>& values,
                          const std::string& path, const Below& below) const {
    std::vector<const DistributedStructure*> members;
    for (const DistributedStructure* value : values) members.push_back(&below(*value));
    return (*this)(members, path);
  }

  DistributedStructure tuple(const std::vector<const DistributedStructure*>& values,
                             const std::string& path) const {
    const size_t size = values[0]->members().size();
    for (size_t i = 1; i < values.size(); ++i) {
      const size_t other = values[i]->members().size();
      if (other != size) differ(path, i, str(size, " members on replica 0, but ", other));
    }
    Tuple members;
    for (size_t m = 0; m < size; ++m) {
      members.push_back(at(
          values, path + internal::index_path(m), [m](const auto& value) -> auto& {
            return value.members()[m];
          }));
    }
    return DistributedStructure::make_tuple(std::move(members));
  }

  // Keys may come in another order on other replicas.
  DistributedStructure dict(const std::vector<const DistributedStructure*>& values,
                            const std::string& path) const {
    const Dict& first = values[0]->items();
    for (size_t i = 1; i < values.size(); ++i) {
      const Dict& other = values[i]->items();
      if (other.size() != first.size()) {
        differ(path, i, str(first.size(), " keys on replica 0, but ", other.size()));
      }
      for (const auto& [key, unused] : first) {
        const auto same = [&key = key](const auto& item) { return item.first == key; };
        if (std::none_of(other.begin(), other.end(), same)) {
          differ(path, i, str("the key ", internal::quoted(key), " on replica 0, but not"));
        }
      }
    }
    Dict members;
    for (const auto& [key, unused] : first) {
      members.emplace_back(
          key,
          at(
              values, path + internal::key_path(key), [&key = key](const auto& value) -> auto& {
                return value[key];
              }));
    }
    return DistributedStructure::make_dict(std::move(members));
  }

  static DistributedStructure variable(const std::vector<const DistributedStructure*>& values,
                                       const std::string& path) {
    for (size_t i = 1; i < values.size(); ++i) {
      if (values[i]->variable() == values[0]->variable()) continue;
      differ(path, i, "one variable on replica 0, but another");
    }
    return *values[0];
  }

  DistributedStructure leaf(const std::vector<const DistributedStructure*>& values) const {
    const bool same = std::all_of(values.begin(), values.end(), [&](const auto* value) {
      return is_same_object(value->plain(), values[0]->plain());
    });
    if (same && !options_.always_wrap) return *values[0];
    return wrapped(values, options_.wrap);
  }

  const RegroupOptions options_;
};

template <class Values>
DistributedStructure from_components(const Values& components, RegroupAs wrap) {
  std::vector<DistributedStructure> values(components.begin(), components.end());
  return regroup(values, {.wrap = wrap, .always_wrap = true});
}

template <class Component>
DistributedStructure component_at(const Component& value, size_t replica) {
  if (replica < value.size()) return value.values()[replica];
  throw OutOfRangeError(
      str("select_replica: replica ", replica, " of a value with ", value.size(), " components"));
}

DistributedStructure select(size_t replica, const DistributedStructure& structure, bool mirrored,
                            const std::string& path) {
  const bool differs = structure.is_per_replica() ||
                       (structure.is_variable() &&
                        structure.variable().synchronization() == VariableSynchronization::ON_READ);
  if (mirrored && differs) {
    throw InvalidArgumentError(str("Expected value to be mirrored across replicas: at ",
                                   place(path), " there is ", kind_of(structure), " in ",
                                   structure));
  }
  if (structure.is_per_replica()) return component_at(structure.per_replica(), replica);
  if (structure.is_mirrored()) return component_at(structure.mirrored(), replica);
  if (structure.is_tuple()) {
    Tuple members;
    for (const DistributedStructure& member : structure.members()) {
      members.push_back(
          select(replica, member, mirrored, path + internal::index_path(members.size())));
    }
    return DistributedStructure::make_tuple(std::move(members));
  }
  if (structure.is_dict()) {
    Dict members;
    for (const auto& [key, member] : structure.items()) {
      members.emplace_back(key, select(replica, member, mirrored, path + internal::key_path(key)));
    }
    return DistributedStructure::make_dict(std::move(members));
  }
  return structure;
}

template <class Components>
bool are_leaves(const Components& components) {
  return !components.empty() && std::all_of(components.begin(), components.end(),
                                            [](const Structure& s) { return s.is_leaf(); });
}

}  // namespace

DistributedStructure::DistributedStructure(const Structure& plain) : node_(Tuple()) {
  if (plain.is_leaf()) {
    node_ = plain.leaf();
  } else if (plain.is_tuple()) {
    node_ = Tuple(plain.members().begin(), plain.members().end());
  } else {
    node_ = Dict(plain.items().begin(), plain.items().end());
  }
}

// Components that are leaves are kept as they are: they must not come back as structures of
// themselves.
DistributedStructure::DistributedStructure(const PerReplica<Structure>& value) : node_(value) {
  if (!are_leaves(value.values())) {
    *this = from_components(value.values(), RegroupAs::PER_REPLICA);
  }
}
DistributedStructure::DistributedStructure(const Mirrored<Structure>& value) : node_(value) {
  if (!are_leaves(value.values())) *this = from_components(value.values(), RegroupAs::MIRRORED);
}
DistributedStructure::DistributedStructure(const PerReplica<Tensor>& value)
    : DistributedStructure(from_components(value.values(), RegroupAs::PER_REPLICA)) {}
DistributedStructure::DistributedStructure(const Mirrored<Tensor>& value)
    : DistributedStructure(from_components(value.values(), RegroupAs::MIRRORED)) {}

DistributedStructure DistributedStructure::make_tuple(Tuple members) {
  return DistributedStructure(Node(std::move(members)));
}
DistributedStructure DistributedStructure::make_dict(Dict members) {
  for (size_t i = 0; i < members.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (members[i].first != members[j].first) continue;
      throw InvalidArgumentError(
          str("a dict has the key ", internal::quoted(members[i].first), " twice"));
    }
  }
  return DistributedStructure(Node(std::move(members)));
}

void DistributedStructure::throw_not(const char* wanted) const {
  throw InvalidArgumentError(str("expected ", wanted, ", but this is ", kind_of(*this)));
}

const DistributedStructure& DistributedStructure::operator[](size_t i) const {
  const Tuple& all = members();
  if (i < all.size()) return all[i];
  throw OutOfRangeError(str("member ", i, " of a tuple of ", all.size()));
}

const DistributedStructure& DistributedStructure::operator[](std::string_view key) const {
  for (const auto& [name, member] : items()) {
    if (name == key) return member;
  }
  throw NotFoundError(str("no key ", internal::quoted(key), " in a dict of ", items().size()));
}

Structure DistributedStructure::to_structure() const {
  if (is_tuple()) {
    std::vector<Structure> structures;
    for (const DistributedStructure& member : members())
      structures.push_back(member.to_structure());
    return Structure::make_tuple(std::move(structures));
  }
  if (is_dict()) {
    Structure::Dict structures;
    for (const auto& [key, member] : items()) structures.emplace_back(key, member.to_structure());
    return Structure::make_dict(std::move(structures));
  }
  return plain();
}

DistributedStructure regroup(const std::vector<DistributedStructure>& values,
                             const RegroupOptions& options) {
  if (values.empty()) {
    throw InvalidArgumentError("regroup: there are no values; give one for each replica");
  }
  std::vector<const DistributedStructure*> pointers;
  for (const DistributedStructure& value : values) pointers.push_back(&value);
  return Regrouper(options)(pointers, "");
}

DistributedStructure select_replica(size_t replica, const DistributedStructure& structure) {
  return select(replica, structure, /*mirrored=*/false, "");
}
DistributedStructure select_replica_mirrored(size_t replica,
                                             const DistributedStructure& structure) {
  return select(replica, structure, /*mirrored=*/true, "");
}

std::ostream& operator<<(std::ostream& out, const DistributedStructure& structure) {
  if (structure.is_plain()) return out << Structure(structure.plain());
  if (structure.is_variable()) return out << structure.variable();
  if (structure.is_per_replica()) return out << structure.per_replica();
  if (structure.is_mirrored()) {
    internal_values::print_components(out, "Mirrored", structure.mirrored().size(),
                                      [&](size_t i) { out << structure.mirrored().value(i); });
    return out;
  }
  const char* separator = "";
  out << (structure.is_tuple() ? '(' : '{');
  if (structure.is_tuple()) {
    for (const auto& member : structure.members()) {
      out << std::exchange(separator, ", ") << member;
    }
  } else {
    for (const auto& [key, member] : structure.items()) {
      out << std::exchange(separator, ", ") << internal::quoted(key) << ": " << member;
    }
  }
  return out << (structure.is_tuple() ? ')' : '}');
}

}  // namespace cohort::distribute
