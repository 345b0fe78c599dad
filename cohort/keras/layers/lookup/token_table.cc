#include "cohort/keras/layers/lookup/token_table.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "cohort/core/bytes/fingerprint.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

template <class Token>
std::string show_all(const std::vector<Token>& tokens) {
  std::string text;
  for (const Token& token : tokens) text += str(text.empty() ? "" : ", ", show(token));
  return "[" + text + "]";
}

// What TensorFlow's floormod and to_hash_bucket_fast give.
int64_t bucket(int64_t key, int64_t buckets) { return (key % buckets + buckets) % buckets; }
int64_t bucket(std::string_view key, int64_t buckets) {
  return static_cast<int64_t>(fingerprint64(key) % static_cast<uint64_t>(buckets));
}

template <class Key>
class VocabularyCheck {
 public:
  VocabularyCheck(const SpecialTokens<Key>& special, const Tokens<Key>& tokens,
                  const std::string& layer)
      : special_(special), tokens_(tokens), layer_(layer) {}

  [[noreturn]] void fail_repeated(size_t first, size_t second) const {
    throw InvalidArgumentError(str(layer_, ": a vocabulary has each token once, but ",
                                   show(tokens_.keys[first]), " is at ", tokens_.place(first),
                                   " and again at ", tokens_.place(second)));
  }

  void check_not_reserved(size_t i) const {
    const Key& key = tokens_.keys[i];
    if (special_.mask && key == Key(*special_.mask)) fail_reserved("mask", key, i);
    if (special_.invert && key == Key(special_.oov)) fail_reserved("OOV", key, i);
  }

  void check_none_reserved(const VocabularyIndex& mapped) const {
    const auto check = [&](const char* kind, std::string_view token) {
      const int64_t number = mapped.find(token);
      if (number >= 0) fail_reserved(kind, token, static_cast<size_t>(number));
    };
    if constexpr (std::is_same_v<Key, std::string_view>) {
      if (special_.mask) check("mask", *special_.mask);
      if (special_.invert) check("OOV", special_.oov);
    }
  }

 private:
  template <class Shown>
  [[noreturn]] void fail_reserved(const char* kind, Shown token, size_t i) const {
    const std::string remedy =
        tokens_.source == TokenSource::kFile
            ? std::string("a vocabulary file holds no special tokens; remove that line")
            : str("give the vocabulary without special tokens, or with all of them at its start: ",
                  show_all(special_.all()));
    throw InvalidArgumentError(str(layer_, ": the reserved ", kind, " token ", show(token),
                                   " is in the vocabulary at ", tokens_.place(i), "; ", remedy));
  }

  const SpecialTokens<Key>& special_;
  const Tokens<Key>& tokens_;
  const std::string& layer_;
};

}  // namespace

template <class Key>
std::vector<typename SpecialTokens<Key>::Token> SpecialTokens<Key>::all() const {
  std::vector<Token> tokens(static_cast<size_t>(token_start()), oov);
  if (oov_start() == 1) tokens[0] = *mask;
  return tokens;
}

template <class Key>
TokenTable<Key>::TokenTable(SpecialTokens<Key> special, Tokens<Key> tokens,
                            const std::string& layer)
    : special_(std::move(special)),
      layer_(layer),
      memory_(std::move(tokens.memory)),
      index_(tokens.keys.size()),
      mapped_(tokens.mapped) {
  const auto special_tokens = special_.all();
  size_t begin = 0;
  if (tokens.source == TokenSource::kGiven && special_tokens.size() <= tokens.keys.size() &&
      std::equal(special_tokens.begin(), special_tokens.end(), tokens.keys.begin(),
                 [](const auto& a, const auto& b) { return Key(a) == b; })) {
    begin = special_tokens.size();
    had_special_tokens_ = true;
  }
  const VocabularyCheck<Key> check(special_, tokens, layer_);
  if (mapped_ != nullptr) check.check_none_reserved(mapped_->index());
  for (size_t i = begin; i < tokens.keys.size(); ++i) {
    check.check_not_reserved(i);
    const auto [number, is_new] = index_.insert(tokens.keys[i]);
    if (!is_new) check.fail_repeated(begin + static_cast<size_t>(number), i);
  }
}

template <class Key>
std::vector<Key> TokenTable<Key>::tokens() const {
  if constexpr (std::is_same_v<Key, std::string_view>) {
    if (mapped_ != nullptr) return mapped_->index().tokens();
  }
  return index_.keys();
}

template <class Key>
int64_t TokenTable<Key>::size() const {
  return mapped_ != nullptr ? mapped_->index().size() : index_.size();
}

template <class Key>
void TokenTable<Key>::find_tokens(const Key* keys, int64_t count, int64_t* numbers) const {
  if constexpr (std::is_same_v<Key, std::string_view>) {
    if (mapped_ != nullptr) return mapped_->index().find_all(keys, count, numbers);
  }
  index_.find_all(keys, count, numbers);
}

template <class Key>
void TokenTable<Key>::find(const Key* keys, int64_t count, int64_t* indices) const {
  find_tokens(keys, count, indices);
  const int64_t start = special_.token_start();
  bool all_found = true;
  for (int64_t i = 0; i < count; ++i) {
    indices[i] = indices[i] >= 0 ? start + indices[i] : out_of_vocabulary(keys[i]);
    all_found = all_found && indices[i] != kMissing;
  }
  if (!all_found) fail_out_of_vocabulary(keys, count);
}

template <class Key>
int64_t TokenTable<Key>::out_of_vocabulary(Key key) const {
  if (special_.mask && key == Key(*special_.mask)) return special_.mask_has_index ? 0 : kDropped;
  if (special_.num_oov_indices == 0) return kMissing;
  if (special_.num_oov_indices == 1) return special_.oov_start();
  return special_.oov_start() + bucket(key, special_.num_oov_indices);
}

template <class Key>
void TokenTable<Key>::fail_out_of_vocabulary(const Key* keys, int64_t count) const {
  constexpr size_t kShown = 5;
  std::vector<Key> missing;
  size_t total = 0;
  for (int64_t i = 0; i < count; ++i) {
    int64_t number = -1;
    find_tokens(&keys[i], 1, &number);
    if (number >= 0 || out_of_vocabulary(keys[i]) != kMissing) continue;
    if (missing.size() < kShown) missing.push_back(keys[i]);
    ++total;
  }
  throw InvalidArgumentError(str(layer_, ": with num_oov_indices = 0 all inputs must be in the ",
                                 "vocabulary, but ", total, total == 1 ? " is" : " are",
                                 " not: ", show_all(missing), total > kShown ? " and others" : "",
                                 "; num_oov_indices = 1 gives them an index"));
}

template <class Key>
void TokenTable<Key>::tokens_at(const int64_t* indices, int64_t count, Key* tokens) const {
  std::vector<int64_t> numbers(static_cast<size_t>(count), -1);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = indices[i];
    const bool is_mask = index == 0 && special_.oov_start() == 1;
    tokens[i] = is_mask ? Key(*special_.mask) : Key(special_.oov);
    if (index >= special_.token_start()) {
      numbers[static_cast<size_t>(i)] = index - special_.token_start();
    }
  }
  if constexpr (std::is_same_v<Key, std::string_view>) {
    if (mapped_ != nullptr) return mapped_->index().tokens_at(numbers.data(), count, tokens);
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t number = numbers[static_cast<size_t>(i)];
    if (number < 0 || number >= index_.size()) continue;
    tokens[i] = index_.keys()[static_cast<size_t>(number)];
  }
}

template <class Key>
Leaf TokenTable<Key>::tokens_at(const std::shared_ptr<const TokenTable>& table,
                                const Tensor& indices) {
  const auto* index = indices.data_ptr<int64_t>();
  const int64_t count = indices.numel();
  if constexpr (std::is_same_v<Key, int64_t>) {
    Tensor tokens = at::empty(indices.sizes(), int64);
    table->tokens_at(index, count, tokens.data_ptr<int64_t>());
    return tokens;
  } else {
    struct Memory {
      std::shared_ptr<const TokenTable> table;
      std::vector<std::string_view> views;
    };
    auto memory = std::make_shared<Memory>(Memory{table, {}});
    memory->views.resize(static_cast<size_t>(count));
    table->tokens_at(index, count, memory->views.data());
    const std::string_view* views = memory->views.data();
    return StringTensor::over(std::move(memory), views, indices.sizes().vec());
  }
}

template struct SpecialTokens<std::string_view>;
template struct SpecialTokens<int64_t>;
template class TokenTable<std::string_view>;
template class TokenTable<int64_t>;

}  // namespace cohort::internal
