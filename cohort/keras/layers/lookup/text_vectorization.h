// Texts into indices of tokens, or into vectors of counts: from sentences to what an Embedding or a
// Dense layer takes.
//
//   layers::TextVectorization vectorize({.max_tokens = 10'000, .output_sequence_length = 64});
//   vectorize.adapt(texts);                                   // learns the vocabulary
//   vectorize(StringTensor({"The cat sat.", "A dog!"}));      // [2, 64], filled up with 0
//   dataset.map(vectorize, {.vectorized = true});             // or in a model of strings
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/string_tensor.h"
#include "cohort/keras/layers/base/layer_handle.h"
#include "cohort/keras/layers/preprocessing/adapt_options.h"
#include "cohort/keras/layers/lookup/vocabulary.h"

namespace cohort {
namespace data {
class Dataset;
}

namespace keras::layers {

// A step of the preparation: one of Keras's by name, nullptr for none, or a function.
template <class Function>
class TextStep {
 public:
  TextStep(const char* name) : name_(name) {}
  TextStep(std::string name) : name_(std::move(name)) {}
  TextStep(std::nullptr_t) {}
  template <class Fn>
  requires(std::constructible_from<Function, Fn> && !std::convertible_to<Fn, std::string_view> &&
           !std::same_as<Fn, std::nullptr_t>) TextStep(Fn fn)
      : function_(std::move(fn)) {}

  const std::optional<std::string>& name() const { return name_; }
  const Function& function() const { return function_; }

 private:
  std::optional<std::string> name_;
  Function function_;
};

// How many neighbouring tokens make one: 2 stands for single tokens and pairs, {2} for pairs alone.
class Ngrams {
 public:
  Ngrams() = default;
  Ngrams(int longest) {
    for (int64_t length = 1; length <= longest; ++length) lengths_.push_back(length);
  }
  Ngrams(std::initializer_list<int64_t> lengths) : lengths_(lengths) {}
  Ngrams(std::vector<int64_t> lengths) : lengths_(std::move(lengths)) {}
  const std::vector<int64_t>& lengths() const { return lengths_; }

 private:
  std::vector<int64_t> lengths_;
};

struct TextVectorizationOptions {
  // See StringLookupOptions.
  std::optional<int64_t> max_tokens = std::nullopt;
  // "lower_and_strip_punctuation", "lower", "strip_punctuation" (of ASCII), nullptr, or a function
  // of a StringTensor, of the same shape.
  TextStep<std::function<StringTensor(const StringTensor&)>> standardize =
      "lower_and_strip_punctuation";
  // "whitespace", "character", nullptr (each string is a token), or a function from a text to its
  // tokens.
  TextStep<std::function<std::vector<std::string>(std::string_view)>> split = "whitespace";
  Ngrams ngrams = {};  // joined by a blank
  // "int": the tokens' indices in their order, 0 for no token and 1 for one outside of the
  // vocabulary. "multi_hot", "count", "tf_idf": a vector for each text, as StringLookup.
  std::string output_mode = "int";
  // The number of indices for each text with "int", however many tokens it has.
  std::optional<int64_t> output_sequence_length = std::nullopt;
  bool pad_to_max_tokens = false;
  StringVocabulary vocabulary = {};
  std::vector<double> idf_weights = {};
  std::string name = "";
};

// Shapes: [], [n] or [n, 1] -> int64 [n, the most tokens of a text] or [n, output_sequence_length];
// with a vector mode [n, vocabulary_size()]. Without a split [..] -> the same. A vocabulary that
// adapt has learned is part of a checkpoint. Thread safety and errors: as StringLookup;
// InvalidArgument (texts of another shape).
class COHORT_API TextVectorization : public LayerHandle {
 public:
  // Errors: InvalidArgument (an option, with its value).
  explicit TextVectorization(TextVectorizationOptions options = {});

  // Learns the vocabulary of texts; see StringLookup::adapt.
  void adapt(const data::Dataset& dataset, const AdaptOptions& options = {}) const;
  void adapt(const StringTensor& texts, const AdaptOptions& options = {}) const;
  void set_vocabulary(const StringVocabulary& vocabulary,
                      const std::vector<double>& idf_weights = {}) const;
  std::vector<std::string> get_vocabulary(bool include_special_tokens = true) const;
  int64_t vocabulary_size() const;
};

}  // namespace keras::layers
}  // namespace cohort
