#include "cohort/distribute/values/values.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "cohort/core/structure/composite.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

class MemberSource final : public ReplicaSource {
 public:
  MemberSource(std::shared_ptr<const ReplicaSource> whole,
               std::function<Structure(const Structure&)> member)
      : ReplicaSource(whole->first()), whole_(std::move(whole)), member_(std::move(member)) {}
  Structure component(int replica) const override { return member_(whole_->component(replica)); }
  bool has_all() const override { return whole_->has_all(); }

 private:
  std::shared_ptr<const ReplicaSource> whole_;
  std::function<Structure(const Structure&)> member_;
};

class FunctionSource final : public ReplicaSource {
 public:
  FunctionSource(int first, std::function<Structure(int)> component)
      : ReplicaSource(first), component_(std::move(component)) {}
  Structure component(int replica) const override { return component_(replica); }

 private:
  std::function<Structure(int)> component_;
};

}  // namespace

std::shared_ptr<const ReplicaSource> source_of(int first, std::function<Structure(int)> component) {
  return std::make_shared<FunctionSource>(first, std::move(component));
}

std::shared_ptr<const ReplicaSource> member_source(
    const std::shared_ptr<const ReplicaSource>& source, size_t member) {
  if (source == nullptr) return nullptr;
  return std::make_shared<MemberSource>(source, [member](const Structure& s) { return s[member]; });
}

std::shared_ptr<const ReplicaSource> member_source(
    const std::shared_ptr<const ReplicaSource>& source, std::string_view member) {
  if (source == nullptr) return nullptr;
  return std::make_shared<MemberSource>(
      source, [key = std::string(member)](const Structure& s) { return s[key]; });
}

}  // namespace cohort::internal

namespace cohort::distribute {

ReduceOp parse_reduce_op(std::string_view name) {
  const std::string word = internal::upper(name);
  if (word == "SUM") return ReduceOp::SUM;
  if (word == "MEAN") return ReduceOp::MEAN;
  throw InvalidArgumentError(internal::str("reduce op '", name, "'; it must be SUM or MEAN"));
}

std::string_view reduce_op_name(ReduceOp op) { return op == ReduceOp::SUM ? "SUM" : "MEAN"; }

std::ostream& operator<<(std::ostream& out, const PerReplicaSpec& spec) {
  if (spec.num_replicas == 1) return out << spec.component;
  out << "PerReplicaSpec(";
  for (size_t i = 0; i < spec.num_replicas; ++i) out << (i == 0 ? "" : ", ") << spec.component;
  return out << ")";
}

namespace internal_values {

namespace {

const Tensor& tensor_or_throw(const Structure& member, const std::string& which) {
  using internal::Composite;
  const bool leaf = internal::holds_leaf(member);
  if (leaf && member.leaf().is_tensor()) return member.tensor();
  const char* kind = leaf                ? "a tensor of strings"
                     : member.is_tuple() ? "a tuple"
                     : internal::composite_kind(member) == Composite::kRagged ? "a RaggedTensor"
                                                                              : "a dict";
  throw InvalidArgumentError(internal::str("batch[", which,
                                           "] gives tensors of numbers, but this is ", kind,
                                           "; use batch.member(", which, ")"));
}

}  // namespace

const Tensor& tensor_member(const Structure& member, size_t which) {
  return tensor_or_throw(member, internal::decimal_digits(which));
}
const Tensor& tensor_member(const Structure& member, std::string_view which) {
  return tensor_or_throw(member, internal::str('"', which, '"'));
}

void print_components(std::ostream& out, std::string_view kind, size_t count,
                      FunctionRef<void(size_t)> print_one) {
  out << kind << (count == 0 ? ":{" : ":{\n");
  for (size_t i = 0; i < count; ++i) {
    out << "  " << i << ": ";
    print_one(i);
    out << (i + 1 < count ? ",\n" : "\n");
  }
  out << "}";
}

void print_per_replica(std::ostream& out, const PerReplica<Structure>& value) {
  if (value.size() == 0) return print_components(out, "PerReplica", 0, [](size_t) {});
  if (value.size() == 1) {
    out << value.value(0);
    return;
  }
  const Structure& first = value.value(0);
  const auto member = [&](auto&& get) {
    PerReplica<Structure>::Values members;
    for (const Structure& component : value.values()) members.push_back(get(component));
    print_per_replica(out, PerReplica<Structure>(std::move(members)));
  };
  if (first.is_leaf() || internal::composite_kind(first) != internal::Composite::kNone) {
    print_components(out, "PerReplica", value.size(), [&](size_t i) { out << value.value(i); });
  } else if (first.is_tuple()) {
    out << "(";
    for (size_t i = 0; i < first.size(); ++i) {
      if (i > 0) out << ", ";
      member([i](const Structure& s) { return s[i]; });
    }
    out << (first.size() == 1 ? ",)" : ")");
  } else {
    out << "{";
    bool begun = false;
    for (const auto& item : first.items()) {
      out << (begun ? ", '" : "'") << item.first << "': ";
      member([&](const Structure& s) { return s[item.first]; });
      begun = true;
    }
    out << "}";
  }
}

}  // namespace internal_values
}  // namespace cohort::distribute
