// Maps strings to integers by a vocabulary, since models learn from numbers.
//
//   layers::StringLookup lookup({.vocabulary = {"a", "b"}});
//   lookup(StringTensor({"b", "z"}));             // 2, 0: index 0 is for what is out of vocabulary
//   dataset.map(lookup, {.vectorized = true});    // or in a model with an Input of strings
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/layer_handle.h"
#include "cohort/keras/layers/preprocessing/adapt_options.h"
#include "cohort/keras/layers/lookup/vocabulary.h"

namespace cohort {
namespace data {
class Dataset;
}

namespace keras::layers {

struct StringLookupOptions {
  // Missing: the layer learns a vocabulary (adapt), or gets one before it is called
  // (set_vocabulary). Special tokens are either left out, or all at the start of the list, in their
  // order.
  StringVocabulary vocabulary = {};
  // The number of indices for strings outside of the vocabulary. With several, a string's index
  // among them is its tf.strings.to_hash_bucket_fast; with none, such a string is an error.
  int64_t num_oov_indices = 1;
  // The mask token. It has index 0 (before the indices for strings outside of the vocabulary) with
  // output_mode "int", and is left out of the vectors of the other modes. Missing: there is none.
  std::optional<std::string> mask_token = std::nullopt;
  // The token that get_vocabulary and invert return for indices of strings outside of the
  // vocabulary.
  std::string oov_token = "[UNK]";
  // The largest size of a vocabulary, including its special tokens; adapt keeps the most frequent
  // tokens.
  std::optional<int64_t> max_tokens = std::nullopt;
  // One weight per token, for output_mode "tf_idf" with a vocabulary.
  std::vector<double> idf_weights = {};
  // Indices to strings instead.
  bool invert = false;
  // "int": an index for each string.
  // "one_hot": a vector for each, [n] and [n, 1] -> [n, vocabulary_size()].
  // "multi_hot", "count", "tf_idf": a vector for each row, [n, m] -> [n, vocabulary_size()]: which
  // tokens are there; how often; that times idf_weights.
  std::string output_mode = "int";
  // Vectors have max_tokens columns, even if the vocabulary is smaller.
  bool pad_to_max_tokens = false;
  // The output's dtype; missing: int64 with "int", else backend::floatx().
  std::optional<DType> dtype = std::nullopt;
  std::string name = "";
};

// Shapes: strings [..] -> [..] with output_mode "int"; see there for the others. With invert:
// integers [..] -> strings [..].
// A vocabulary that adapt has learned is part of a checkpoint; one that was given is not, as the
// program gives it again.
// Thread safety: calls from any thread, without a lock; adapt and set_vocabulary from one thread
// while nobody calls. Made under a strategy's scope or not: all replicas share one table.
// Errors (call): InvalidArgument (no strings; out of vocabulary while num_oov_indices is 0: names
// some), FailedPrecondition (no vocabulary yet).
class COHORT_API StringLookup : public LayerHandle {
 public:
  // Errors: InvalidArgument (options that contradict each other; a vocabulary that is empty, has a
  // token twice, or the mask token or, with invert, the OOV token inside; a file that is missing or
  // has an empty line: names the token, and file, line and byte offset).
  explicit StringLookup(StringLookupOptions options = {});

  using LayerHandle::operator();
  // To invert: indices become strings, which a Tensor cannot hold.
  Structure operator()(const Tensor& indices, const CallOptions& options = {}) const {
    return (*this)(Structure(indices), options);
  }

  // Replaces the vocabulary.
  // Errors: as the constructor; FailedPrecondition (the number of the vectors' columns would
  // change).
  void set_vocabulary(const StringVocabulary& vocabulary,
                      const std::vector<double>& idf_weights = {}) const;
  // Learns the vocabulary: all tokens of the data, the most frequent first, those of one number in
  // descending order. What was learned before is forgotten. For tf_idf a document is a row of a
  // tensor of two dimensions, else an element of the dataset.
  // Errors: FailedPrecondition (made with a vocabulary; as set_vocabulary), InvalidArgument (no
  // strings, no data, a dataset without an end and no .steps), what reading the dataset throws.
  void adapt(const data::Dataset& dataset, const AdaptOptions& options = {}) const;
  void adapt(const StringTensor& tokens, const AdaptOptions& options = {}) const;
  // The vocabulary by index, without the special tokens, beginning with the first other token.
  std::vector<std::string> get_vocabulary(bool include_special_tokens = true) const;
  // The vocabulary by index, with the special tokens.
  int64_t vocabulary_size() const;
};

}  // namespace keras::layers
}  // namespace cohort
