#include "cohort/keras/layers/lookup/text_vectorization.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/zeros.h>

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/profiler/tracing.h"
#include "cohort/core/text.h"
#include "cohort/data/dataset.h"
#include "cohort/keras/base/describe_leaves.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/lookup/string_lookup.h"
#include "cohort/keras/layers/lookup/tokenizer.h"

namespace cohort::keras::layers {
namespace {

using internal::str;
using internal::Tokenizer;
using internal::TokenizerOptions;

[[noreturn]] void throw_text_option(const char* option, const std::string& value,
                                    const char* known) {
  throw InvalidArgumentError(str("TextVectorization: ", option, " is ", internal::quoted(value),
                                 "; it is one of ", known, ", nullptr or a function"));
}

TokenizerOptions tokenizer_options(const TextVectorizationOptions& options) {
  TokenizerOptions steps{.standardize = options.standardize.function(),
                         .by = TokenizerOptions::Split::kNone,
                         .split = options.split.function(),
                         .ngrams = options.ngrams.lengths()};
  if (const auto& name = options.standardize.name()) {
    const bool both = *name == "lower_and_strip_punctuation";
    steps.lower = both || *name == "lower";
    steps.strip_punctuation = both || *name == "strip_punctuation";
    if (!steps.lower && !steps.strip_punctuation) {
      throw_text_option("standardize", *name,
                        "'lower_and_strip_punctuation', 'lower', 'strip_punctuation'");
    }
  }
  if (const auto& name = options.split.name()) {
    if (*name != "whitespace" && *name != "character") {
      throw_text_option("split", *name, "'whitespace', 'character'");
    }
    steps.by = *name == "character" ? TokenizerOptions::Split::kCharacter
                                    : TokenizerOptions::Split::kWhitespace;
  }
  for (const int64_t length : steps.ngrams) {
    if (length > 0) continue;
    throw InvalidArgumentError(
        str("TextVectorization: ngrams have the length ", length, "; it must be above 0"));
  }
  return steps;
}

StringLookup make_text_lookup(const TextVectorizationOptions& options) {
  if (options.output_mode == "one_hot") {
    throw InvalidArgumentError(
        "TextVectorization: output_mode is 'one_hot'; it is one of 'int', 'multi_hot', 'count' and "
        "'tf_idf'");
  }
  return StringLookup({.vocabulary = options.vocabulary,
                       .mask_token = "",
                       .max_tokens = options.max_tokens,
                       .idf_weights = options.idf_weights,
                       .output_mode = options.output_mode,
                       .pad_to_max_tokens = options.pad_to_max_tokens});
}

// Keras reads a number alone back, which stands for the lengths up to it.
internal::Json ngrams_json(const std::vector<int64_t>& lengths) {
  if (lengths.empty()) return nullptr;
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] != static_cast<int64_t>(i) + 1) return lengths;
  }
  return lengths.size();
}

class TextVectorizationImpl final : public Layer {
 public:
  explicit TextVectorizationImpl(TextVectorizationOptions options)
      : Layer("TextVectorization", {.name = options.name, .autocast = false}),
        options_(std::move(options)),
        tokenizer_(tokenizer_options(options_)),
        lookup_(make_text_lookup(options_)) {
    if (options_.output_sequence_length &&
        (*options_.output_sequence_length < 1 || options_.output_mode != "int")) {
      throw InvalidArgumentError(str("TextVectorization: output_sequence_length is ",
                                     *options_.output_sequence_length,
                                     "; it must be above 0, and output_mode 'int'"));
    }
    track("_lookup_layer", lookup_);
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](internal::FieldWriter& field) {
      if (tokenizer_.options().standardize || tokenizer_.options().split) {
        throw UnimplementedError(
            "its standardize or split is a function of the program, which no file can hold");
      }
      const Config lookup = *lookup_.get_config();
      field.always("dtype", "string");
      field("max_tokens", options_.max_tokens);
      field("standardize", options_.standardize.name());
      field("split", options_.split.name());
      field.always("ngrams", ngrams_json(options_.ngrams.lengths()));
      field("output_mode", options_.output_mode);
      field("output_sequence_length", options_.output_sequence_length);
      field("pad_to_max_tokens", options_.pad_to_max_tokens);
      field.always("sparse", false);
      field.always("ragged", false);
      field.always("encoding", "utf-8");
      for (const char* own : {"vocabulary", "idf_weights", "vocabulary_size"}) {
        field.always(own, internal::json_of(lookup).at(own));
      }
    });
  }

  // The tokens of texts, as the lookup takes them.
  StringTensor tokens(const Structure& texts) const {
    if (!texts.is_leaf() || !texts.leaf().is_strings()) {
      throw InvalidArgumentError(
          str("layer '", name(), "' takes strings, but got ", internal::describe_leaves(texts)));
    }
    return tokenizer_(texts.leaf().strings(), str("layer '", name(), "'"));
  }

  const StringLookup& lookup() const { return lookup_; }

 protected:
  Structure call(const Structure& inputs, const CallOptions& options) override {
    const StringTensor found = tokens(inputs);
    const Structure outputs = lookup_(Structure(found), options);
    if (options_.output_mode != "int" || found.dim() == 0) return outputs;
    const Tensor& indices = outputs.tensor();
    const bool makes_rows = tokenizer_.options().splits() || !options_.ngrams.lengths().empty();
    if (const auto length = options_.output_sequence_length) {
      return at::constant_pad_nd(indices, {0, *length - indices.size(-1)});  // or cuts off
    }
    if (!makes_rows || !internal::is_tracing()) return outputs;
    // Rows may have any length: this one differs between two batches of unlike sizes.
    std::vector<int64_t> sizes = indices.sizes().vec();
    sizes.back() = sizes[0] + 1;
    return at::zeros(sizes, indices.options());
  }

 private:
  const TextVectorizationOptions options_;
  const Tokenizer tokenizer_;
  const StringLookup lookup_;
};

TextVectorizationImpl& text_impl(const TextVectorization& layer) {
  return static_cast<TextVectorizationImpl&>(*layer.get());
}

}  // namespace

TextVectorization::TextVectorization(TextVectorizationOptions options)
    : LayerHandle(std::make_shared<TextVectorizationImpl>(std::move(options))) {}

void TextVectorization::adapt(const data::Dataset& dataset, const AdaptOptions& options) const {
  text_impl(*this).lookup().adapt(dataset.map([layer = *this](const Structure& texts) -> Structure {
    return text_impl(layer).tokens(texts);
  }),
                                  options);
}

void TextVectorization::adapt(const StringTensor& texts, const AdaptOptions& options) const {
  text_impl(*this).lookup().adapt(text_impl(*this).tokens(texts), options);
}

void TextVectorization::set_vocabulary(const StringVocabulary& vocabulary,
                                       const std::vector<double>& idf_weights) const {
  text_impl(*this).lookup().set_vocabulary(vocabulary, idf_weights);
}

std::vector<std::string> TextVectorization::get_vocabulary(bool include_special_tokens) const {
  return text_impl(*this).lookup().get_vocabulary(include_special_tokens);
}

int64_t TextVectorization::vocabulary_size() const {
  return text_impl(*this).lookup().vocabulary_size();
}

}  // namespace cohort::keras::layers

namespace cohort::internal {
namespace {

// Far longer than what helps: a layer holds all lengths up to its longest.
constexpr int64_t kMostNgrams = 10'000;

}  // namespace

keras::layers::LayerHandle read_text_vectorization(FieldReader& field) {
  keras::layers::TextVectorizationOptions options;
  field.common(options);
  field("max_tokens", options.max_tokens);
  const auto step = [&](const char* key, auto& value) {
    const Json* name = field.find(key);
    if (name == nullptr) return;
    if (name->is_null()) {
      value = nullptr;
    } else {
      std::string text;
      field(key, text);
      value = text;
    }
  };
  step("standardize", options.standardize);
  step("split", options.split);
  const Json* ngrams = field.find("ngrams");
  if (ngrams != nullptr && ngrams->is_number_integer()) {
    int64_t longest = 0;
    field("ngrams", longest);
    if (longest < 0 || longest > kMostNgrams) {
      throw InvalidArgumentError(
          str(quoted("ngrams"), " is ", longest, "; it must lie in [0, ", kMostNgrams, "]"));
    }
    options.ngrams = static_cast<int>(longest);
  } else if (ngrams != nullptr && !ngrams->is_null()) {
    std::vector<int64_t> lengths;
    field("ngrams", lengths);
    options.ngrams = std::move(lengths);
  }
  field("output_mode", options.output_mode);
  field("output_sequence_length", options.output_sequence_length);
  field("pad_to_max_tokens", options.pad_to_max_tokens);
  field.always("sparse", false);
  field.always("ragged", false);
  field.always("encoding", "utf-8");
  field.without_effect("vocabulary_size", nullptr);
  std::optional<std::vector<double>> weights;
  field("idf_weights", weights);
  if (weights) options.idf_weights = *weights;
  std::optional<std::vector<std::string>> vocabulary;
  field("vocabulary", vocabulary);
  if (vocabulary) options.vocabulary = *vocabulary;
  return keras::layers::TextVectorization(std::move(options));
}

}  // namespace cohort::internal
