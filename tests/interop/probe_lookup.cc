#include <cohort/core/error.h>
#include <cohort/keras/layers/lookup/integer_lookup.h>
#include <cohort/keras/layers/lookup/string_lookup.h>

#include <optional>
#include <string>
#include <vector>

#include "probe.h"
#include "tensor_json.h"

namespace cohort::interop {
namespace {

namespace layers = keras::layers;

template <class T>
std::optional<T> optional(const Json& json, const char* key) {
  return json.contains(key) ? std::optional<T>(json.at(key).get<T>()) : std::nullopt;
}

// The options that both layers have, and one field after another.
template <class Options, class Token>
Options read_options(const Json& json) {
  Options options;
  options.num_oov_indices = json.value("num_oov_indices", options.num_oov_indices);
  options.mask_token = optional<Token>(json, "mask_token");
  options.oov_token = json.value("oov_token", options.oov_token);
  options.max_tokens = optional<int64_t>(json, "max_tokens");
  options.idf_weights = json.value("idf_weights", options.idf_weights);
  options.invert = json.value("invert", options.invert);
  options.output_mode = json.value("output_mode", options.output_mode);
  options.pad_to_max_tokens = json.value("pad_to_max_tokens", options.pad_to_max_tokens);
  if (json.contains("file")) options.vocabulary = json.at("file").get<std::string>();
  if (json.contains("vocabulary")) {
    options.vocabulary = json.at("vocabulary").get<std::vector<Token>>();
  }
  return options;
}

template <class Layer>
Json use(const Layer& layer, const Json& request) {
  if (request.contains("adapt")) {
    const Structure data = structure_of(request.at("adapt"));
    if constexpr (std::is_same_v<Layer, layers::StringLookup>) {
      layer.adapt(data.strings());
    } else {
      layer.adapt(data.tensor());
    }
  }
  Json answer = {{"vocabulary", layer.get_vocabulary()},
                 {"tokens", layer.get_vocabulary(/*include_special_tokens=*/false)},
                 {"size", layer.vocabulary_size()},
                 {"outputs", Json::array()}};
  for (const Json& input : request.at("inputs")) {
    try {
      answer["outputs"].push_back(json_of(layer(structure_of(input))));
    } catch (const Error& error) {
      answer["outputs"].push_back({{"error", code_name(error.code())}});
    }
  }
  return answer;
}

}  // namespace

Json look_up(const Json& request) {
  const Json& options = request.at("options");
  try {
    if (request.at("layer") == "StringLookup") {
      return use(
          layers::StringLookup(read_options<layers::StringLookupOptions, std::string>(options)),
          request);
    }
    return use(layers::IntegerLookup(read_options<layers::IntegerLookupOptions, int64_t>(options)),
               request);
  } catch (const Error& error) {
    return {{"error", code_name(error.code())}, {"text", error.what()}};
  }
}

}  // namespace cohort::interop
