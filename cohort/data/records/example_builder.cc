#include "cohort/data/records/example_builder.h"

#include "cohort/core/bytes/fields.h"
#include "cohort/data/records/example.h"

namespace cohort::io {
namespace {

using internal::FeatureKind;

// TensorFlow's messages. A list's numbers are packed.
template <class Value>
struct List {
  std::span<const Value> values;
};
template <class Value>
void fields(auto& f, List<Value>& list) {
  f(1, list.values);
}

template <class Value>
struct Feature {
  FeatureKind kind;
  List<Value> list;
};
template <class Value>
void fields(auto& f, Feature<Value>& feature) {
  f(static_cast<uint32_t>(feature.kind), feature.list, internal::kAlways);
}

struct Features {
  const std::map<std::string, std::string, std::less<>>& by_name;
};
void fields(auto& f, Features& features) { f(1, features.by_name); }

struct Example {
  Features features;
};
void fields(auto& f, Example& example) { f(1, example.features, internal::kAlways); }

template <class Value>
std::string feature(FeatureKind kind, std::span<const Value> values) {
  return internal::encode_fields(Feature<Value>{kind, {values}});
}

template <class Value>
std::span<const Value> span_of(std::initializer_list<Value> values) {
  return {values.begin(), values.size()};
}

}  // namespace

ExampleBuilder& ExampleBuilder::add_bytes(std::string_view name,
                                          std::span<const std::string_view> values) {
  features_.insert_or_assign(std::string(name), feature(FeatureKind::kBytes, values));
  return *this;
}

ExampleBuilder& ExampleBuilder::add_floats(std::string_view name, std::span<const float> values) {
  features_.insert_or_assign(std::string(name), feature(FeatureKind::kFloats, values));
  return *this;
}

ExampleBuilder& ExampleBuilder::add_ints(std::string_view name, std::span<const int64_t> values) {
  features_.insert_or_assign(std::string(name), feature(FeatureKind::kInts, values));
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
  return internal::encode_fields(Example{{features_}});
}

}  // namespace cohort::io
