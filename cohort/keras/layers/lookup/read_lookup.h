// A lookup layer of its configuration. For sources only: it includes nlohmann-json.
#pragma once

#include <string>
#include <vector>

#include "cohort/keras/layers/base/layer_config.h"

namespace cohort::internal {

// The options of StringLookup or IntegerLookup, whose tokens are of type Token.
// Errors: InvalidArgument, Unimplemented (of `field`).
template <class Token, class Options>
Options read_lookup_options(FieldReader& field) {
  Options options;
  field.common(options);
  field("invert", options.invert);
  field("max_tokens", options.max_tokens);
  field("num_oov_indices", options.num_oov_indices);
  field("oov_token", options.oov_token);
  field("mask_token", options.mask_token);
  field("output_mode", options.output_mode);
  field.always("sparse", false);
  field("pad_to_max_tokens", options.pad_to_max_tokens);
  field.without_effect("vocabulary_size", nullptr);
  field.always("vocabulary_dtype", "int64");
  field.always("encoding", "utf-8");
  const Json* weights = field.find("idf_weights");
  if (weights != nullptr && !weights->is_null()) field("idf_weights", options.idf_weights);
  const Json* vocabulary = field.find("vocabulary");
  if (vocabulary == nullptr || vocabulary->is_null()) return options;
  if (vocabulary->is_string()) {
    options.vocabulary = vocabulary->get<std::string>();
  } else {
    std::vector<Token> tokens;
    field("vocabulary", tokens);
    options.vocabulary = tokens;
  }
  return options;
}

}  // namespace cohort::internal
