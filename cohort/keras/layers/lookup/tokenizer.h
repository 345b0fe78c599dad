// Texts into tokens: TextVectorization's first half.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/structure/string_tensor.h"

namespace cohort::internal {

struct TokenizerOptions {
  bool lower = false;              // ASCII letters
  bool strip_punctuation = false;  // ASCII's
  // Replaces both.
  std::function<StringTensor(const StringTensor&)> standardize = {};
  enum class Split { kNone, kWhitespace, kCharacter } by = Split::kWhitespace;
  // Replaces it: the tokens of one text.
  std::function<std::vector<std::string>(std::string_view)> split = {};
  std::vector<int64_t> ngrams = {};  // lengths; empty: the tokens themselves

  bool splits() const { return split || by != Split::kNone; }
};

// Thread safety: any thread, as far as the functions allow it.
class Tokenizer {
 public:
  explicit Tokenizer(TokenizerOptions options) : options_(std::move(options)) {}
  const TokenizerOptions& options() const { return options_; }

  // Shapes: [n] or [n, 1] -> [n, the most tokens of a text], filled up with "". Without a split
  // [..] -> the same, or with n-grams of the last dimension.
  // Errors: InvalidArgument (other shapes; `layer` begins the message).
  StringTensor operator()(const StringTensor& texts, const std::string& layer) const;

 private:
  TokenizerOptions options_;
};

}  // namespace cohort::internal
