// Builds tf.Example and SequenceExample records, TensorFlow's records of named features.
//
//   io::ExampleBuilder example;
//   example.add_bytes("image", {png}).add_ints("label", {7});
//   writer.write(example.serialize());
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/export.h"

namespace cohort::io {

// Each feature is one list of values, perhaps empty. Adding a name again replaces its values.
// Thread safety: as std::map.
class COHORT_API ExampleBuilder {
 public:
  ExampleBuilder& add_bytes(std::string_view name, std::span<const std::string_view> values);
  ExampleBuilder& add_floats(std::string_view name, std::span<const float> values);
  ExampleBuilder& add_ints(std::string_view name, std::span<const int64_t> values);
  // The same for values that stand in the call.
  ExampleBuilder& add_bytes(std::string_view name, std::initializer_list<std::string_view> values);
  ExampleBuilder& add_floats(std::string_view name, std::initializer_list<float> values);
  ExampleBuilder& add_ints(std::string_view name, std::initializer_list<int64_t> values);

  // The message; the same features always give the same bytes.
  std::string serialize() const;

 private:
  friend class SequenceExampleBuilder;

  std::map<std::string, std::string, std::less<>> features_;  // messages Feature
};

// Builds SequenceExample records: features of the whole sequence, its context, and lists of values
// for each of its steps.
//
//   io::SequenceExampleBuilder sentence;
//   sentence.context().add_ints("label", {1});
//   for (const auto& word : words) sentence.add_step_bytes("letters", word);
//   writer.write(sentence.serialize());
//
// Thread safety: as std::map.
class COHORT_API SequenceExampleBuilder {
 public:
  ExampleBuilder& context() { return context_; }

  // Each call adds the values of one step, perhaps none, behind those that the list has.
  SequenceExampleBuilder& add_step_bytes(std::string_view name,
                                         std::span<const std::string_view> values);
  SequenceExampleBuilder& add_step_floats(std::string_view name, std::span<const float> values);
  SequenceExampleBuilder& add_step_ints(std::string_view name, std::span<const int64_t> values);
  // The same for values that stand in the call.
  SequenceExampleBuilder& add_step_bytes(std::string_view name,
                                         std::initializer_list<std::string_view> values);
  SequenceExampleBuilder& add_step_floats(std::string_view name,
                                          std::initializer_list<float> values);
  SequenceExampleBuilder& add_step_ints(std::string_view name,
                                        std::initializer_list<int64_t> values);
  // A list without steps, unless there is one of that name.
  SequenceExampleBuilder& add_list(std::string_view name);

  // The message; the same values always give the same bytes.
  std::string serialize() const;

 private:
  std::vector<std::string>& steps(std::string_view name);

  ExampleBuilder context_;
  std::map<std::string, std::vector<std::string>, std::less<>> lists_;  // messages Feature
};

}  // namespace cohort::io
