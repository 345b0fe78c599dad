#include "cohort/data/records/example_builder.h"

#include <bit>

#include "cohort/core/bytes/varint.h"
#include "cohort/core/bytes/wire.h"
#include "cohort/data/records/example.h"

namespace cohort::io {
namespace {

using internal::FeatureKind;
using internal::WireWriter;

// A list's field 1, packed, where it has values.
std::string feature(FeatureKind kind, std::string_view packed) {
  WireWriter list;
  if (!packed.empty()) list.bytes(1, packed);
  WireWriter feature;
  feature.bytes(static_cast<uint32_t>(kind), list.str());
  return feature.str();
}

template <class Value>
std::span<const Value> span_of(std::initializer_list<Value> values) {
  return {values.begin(), values.size()};
}

}  // namespace

ExampleBuilder& ExampleBuilder::add_bytes(std::string_view name,
                                          std::span<const std::string_view> values) {
  WireWriter list;
  for (const std::string_view value : values) list.bytes(1, value);
  WireWriter feature;
  feature.bytes(static_cast<uint32_t>(FeatureKind::kBytes), list.str());
  features_.insert_or_assign(std::string(name), feature.str());
  return *this;
}

ExampleBuilder& ExampleBuilder::add_floats(std::string_view name, std::span<const float> values) {
  static_assert(std::endian::native == std::endian::little);
  features_.insert_or_assign(
      std::string(name),
      feature(FeatureKind::kFloats,
              {reinterpret_cast<const char*>(values.data()), values.size_bytes()}));
  return *this;
}

ExampleBuilder& ExampleBuilder::add_ints(std::string_view name, std::span<const int64_t> values) {
  std::string packed;
  for (const int64_t value : values) {
    internal::append_varint(packed, static_cast<uint64_t>(value));
  }
  features_.insert_or_assign(std::string(name), feature(FeatureKind::kInts, packed));
  return *this;
}

ExampleBuilder& ExampleBuilder::add_bytes(std::string_view name,
                                          std::initializer_list<std::string_view> values) {
  return add_bytes(name, span_of(values));
}
ExampleBuilder& ExampleBuilder::add_floats(std::string_view name,
                                           std::initializer_list<float> values) {
  return add_floats(name, span_of(values));
}
ExampleBuilder& ExampleBuilder::add_ints(std::string_view name,
                                         std::initializer_list<int64_t> values) {
  return add_ints(name, span_of(values));
}

std::string ExampleBuilder::serialize() const {
  WireWriter features;
  for (const auto& [name, feature] : features_) {
    WireWriter entry;
    entry.bytes(1, name).bytes(2, feature);
    features.bytes(1, entry.str());
  }
  WireWriter example;
  example.bytes(1, features.str());
  return example.str();
}

}  // namespace cohort::io
