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

struct FeatureList {
  const std::vector<std::string>& steps;
};
void fields(auto& f, FeatureList& list) { f(1, list.steps); }

struct FeatureLists {
  const std::map<std::string, std::vector<std::string>, std::less<>>& by_name;
};
void fields(auto& f, FeatureLists& lists) {
  std::vector<std::pair<std::string_view, FeatureList>> entries;
  for (const auto& [name, steps] : lists.by_name) entries.emplace_back(name, FeatureList{steps});
  f(1, entries);
}

struct SequenceExample {
  Features context;
  FeatureLists lists;
};
void fields(auto& f, SequenceExample& example) {
  f(1, example.context);
  f(2, example.lists);
}

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

std::vector<std::string>& SequenceExampleBuilder::steps(std::string_view name) {
  return lists_[std::string(name)];
}

SequenceExampleBuilder& SequenceExampleBuilder::add_step_bytes(
    std::string_view name, std::span<const std::string_view> values) {
  steps(name).push_back(feature(FeatureKind::kBytes, values));
  return *this;
}
SequenceExampleBuilder& SequenceExampleBuilder::add_step_floats(std::string_view name,
                                                                std::span<const float> values) {
  steps(name).push_back(feature(FeatureKind::kFloats, values));
  return *this;
}
SequenceExampleBuilder& SequenceExampleBuilder::add_step_ints(std::string_view name,
                                                              std::span<const int64_t> values) {
  steps(name).push_back(feature(FeatureKind::kInts, values));
  return *this;
}

SequenceExampleBuilder& SequenceExampleBuilder::add_step_bytes(
    std::string_view name, std::initializer_list<std::string_view> values) {
  return add_step_bytes(name, span_of(values));
}
SequenceExampleBuilder& SequenceExampleBuilder::add_step_floats(
    std::string_view name, std::initializer_list<float> values) {
  return add_step_floats(name, span_of(values));
}
SequenceExampleBuilder& SequenceExampleBuilder::add_step_ints(
    std::string_view name, std::initializer_list<int64_t> values) {
  return add_step_ints(name, span_of(values));
}

SequenceExampleBuilder& SequenceExampleBuilder::add_list(std::string_view name) {
  steps(name);
  return *this;
}

std::string SequenceExampleBuilder::serialize() const {
  return internal::encode_fields(SequenceExample{{context_.features_}, {lists_}});
}

}  // namespace cohort::io
