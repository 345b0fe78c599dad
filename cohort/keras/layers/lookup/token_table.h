// Maps tokens to indices and back: the arithmetic of the lookup layers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "cohort/core/structure/structure.h"
#include "cohort/keras/layers/lookup/tokens.h"
#include "cohort/ops/lookup/key_index.h"

namespace cohort::internal {

// The tokens that stand before the vocabulary: index 0 for the mask token, if there is one, then
// num_oov_indices for what is out of the vocabulary. Key is std::string_view or int64_t.
template <class Key>
struct SpecialTokens {
  using Token = std::conditional_t<std::is_same_v<Key, int64_t>, int64_t, std::string>;

  std::optional<Token> mask;
  int64_t num_oov_indices = 1;
  Token oov = {};
  // Whether indices are looked up: OOV is then what other indices give.
  bool invert = false;
  // Whether the mask token has an index; without one it is dropped.
  bool mask_has_index = true;

  int64_t oov_start() const { return mask && mask_has_index ? 1 : 0; }
  int64_t token_start() const { return oov_start() + num_oov_indices; }
  // In their order, once each index.
  std::vector<Token> all() const;
};

// Thread safety: immutable.
template <class Key>
class TokenTable {
 public:
  // Leaves out special tokens that `tokens` begins with, all of them in their order, where they
  // were given as a list. Errors: InvalidArgument (a token twice, the mask token, when inverting
  // the OOV token: names the place; `layer` begins the message).
  TokenTable(SpecialTokens<Key> special, Tokens<Key> tokens, const std::string& layer);

  // Tokens without the special ones.
  std::vector<Key> tokens() const;
  int64_t size() const;  // how many these are
  // Whether `tokens` began with the special ones.
  bool had_special_tokens() const { return had_special_tokens_; }

  // One index for each key; kDropped for a mask token without an index.
  // Errors: InvalidArgument (out of the vocabulary while num_oov_indices is 0: names some).
  static constexpr int64_t kDropped = -1;
  void find(const Key* keys, int64_t count, int64_t* indices) const;

  // The tokens of indices, in the shape of `indices` (int64, contiguous, on the CPU). Strings share
  // the table's memory.
  static Leaf tokens_at(const std::shared_ptr<const TokenTable>& table, const Tensor& indices);

 private:
  static constexpr int64_t kMissing = -2;

  // kMissing where there is no index for it.
  int64_t out_of_vocabulary(Key key) const;
  [[noreturn]] void fail_out_of_vocabulary(const Key* keys, int64_t count) const;
  // The numbers of tokens, from 0; -1 where there is none.
  void find_tokens(const Key* keys, int64_t count, int64_t* numbers) const;
  void tokens_at(const int64_t* indices, int64_t count, Key* tokens) const;

  SpecialTokens<Key> special_;
  std::string layer_;
  std::shared_ptr<const void> memory_;
  KeyIndex<Key> index_;
  std::shared_ptr<const MappedVocabulary> mapped_;  // then the index is empty
  bool had_special_tokens_ = false;
};

}  // namespace cohort::internal
