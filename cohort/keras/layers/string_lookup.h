// Strings to integers, by a vocabulary: what a model can learn from.
//
//   layers::StringLookup lookup({.vocabulary = {"a", "b"}});
//   lookup(StringTensor({"b", "z"}));             // 2, 0: index 0 is for what is out of vocabulary
//   dataset.map(lookup, {.vectorized = true});    // or in a model with an Input of strings
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/layers/layer_handle.h"
#include "cohort/keras/layers/lookup/adapt_options.h"
#include "cohort/keras/layers/lookup/vocabulary.h"

namespace cohort {
namespace data {
class Dataset;
}

namespace keras::layers {

struct StringLookupOptions {
  // Missing: the layer learns one (adapt), or is given one before it is called (set_vocabulary).
  // Special tokens are left out, or all stand at the start of a list in their order.
  StringVocabulary vocabulary = {};
  // Indices for what is out of the vocabulary. With several, a token's is
  // tf.strings.to_hash_bucket_fast of it; with none, such a token is an error.
  int64_t num_oov_indices = 1;
  // Has index 0 (before those out of vocabulary) with output_mode "int", and is left out of the
  // others' vectors. Missing: there is none.
  std::optional<std::string> mask_token = std::nullopt;
  // What get_vocabulary shows for indices out of vocabulary, and invert gives for them.
  std::string oov_token = "[UNK]";
  // Of a vocabulary with its special tokens; adapt keeps the most frequent ones.
  std::optional<int64_t> max_tokens = std::nullopt;
  // With output_mode "tf_idf" and a vocabulary: one for each of its tokens.
  std::vector<double> idf_weights = {};
  // Indices to strings instead.
  bool invert = false;
  // "int": an index for each string.
  // "one_hot": a vector for each, [n] and [n, 1] -> [n, vocabulary_size()].
  // "multi_hot", "count", "tf_idf": a vector for each row, [n, m] -> [n, vocabulary_size()]: which
  // tokens are there; how often; that times idf_weights.
  std::string output_mode = "int";
  // Vectors have max_tokens columns, whatever the size of the vocabulary.
  bool pad_to_max_tokens = false;
  // Of the output; missing: int64 with "int", else backend::floatx().
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

  // Replaces the vocabulary. Errors: as the constructor; FailedPrecondition (vectors would get
  // another number of columns).
  void set_vocabulary(const StringVocabulary& vocabulary,
                      const std::vector<double>& idf_weights = {}) const;
  // Learns the vocabulary: all tokens of the data, the most frequent first, those of one number in
  // descending order. What was learned before is forgotten. For tf_idf a document is a row of a
  // tensor of two dimensions, else an element of the dataset.
  // Errors: FailedPrecondition (made with a vocabulary; as set_vocabulary), InvalidArgument (no
  // strings, no data, a dataset without an end and no .steps), what reading the dataset throws.
  void adapt(const data::Dataset& dataset, const AdaptOptions& options = {}) const;
  void adapt(const StringTensor& tokens, const AdaptOptions& options = {}) const;
  // By index; without the special tokens, from the first other one on.
  std::vector<std::string> get_vocabulary(bool include_special_tokens = true) const;
  // With the special tokens.
  int64_t vocabulary_size() const;
};

}  // namespace keras::layers
}  // namespace cohort
