// Maps integers of any kind (ids, codes) to consecutive indices, by a vocabulary.
//
//   layers::IntegerLookup lookup({.vocabulary = {12, 1138, 42}});
//   lookup(at::tensor({42, 7}));   // 3, 0
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

// See StringLookupOptions.
struct IntegerLookupOptions {
  IntegerVocabulary vocabulary = {};
  // An integer's index among several is its floor modulo their number.
  int64_t num_oov_indices = 1;
  std::optional<int64_t> mask_token = std::nullopt;
  int64_t oov_token = -1;
  std::optional<int64_t> max_tokens = std::nullopt;
  std::vector<double> idf_weights = {};
  bool invert = false;
  std::string output_mode = "int";
  bool pad_to_max_tokens = false;
  std::optional<DType> dtype = std::nullopt;
  std::string name = "";
};

// StringLookup for integers; other numbers are rounded towards zero. Shapes and errors: there.
class COHORT_API IntegerLookup : public LayerHandle {
 public:
  explicit IntegerLookup(IntegerLookupOptions options = {});

  void set_vocabulary(const IntegerVocabulary& vocabulary,
                      const std::vector<double>& idf_weights = {}) const;
  void adapt(const data::Dataset& dataset, const AdaptOptions& options = {}) const;
  void adapt(const Tensor& tokens, const AdaptOptions& options = {}) const;
  std::vector<int64_t> get_vocabulary(bool include_special_tokens = true) const;
  int64_t vocabulary_size() const;
};

}  // namespace keras::layers
}  // namespace cohort
