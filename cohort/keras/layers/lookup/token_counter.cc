#include "cohort/keras/layers/lookup/token_counter.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace cohort::internal {

template <>
std::string_view TokenCounter<std::string_view>::kept(std::string_view token) {
  return strings_.emplace_back(token);
}
template <>
int64_t TokenCounter<int64_t>::kept(int64_t token) {
  return token;
}

namespace {

// Gives tokens memory of their own, so that those left out need not be kept.
void own(Tokens<int64_t>&) {}
void own(Tokens<std::string_view>& tokens) {
  size_t size = 0;
  for (const std::string_view token : tokens.keys) size += token.size();
  auto bytes = std::make_shared<std::string>();
  bytes->reserve(size);
  for (std::string_view& token : tokens.keys) {
    const size_t begin = bytes->size();
    bytes->append(token);
    token = std::string_view(bytes->data() + begin, token.size());
  }
  tokens.memory = std::move(bytes);
}

}  // namespace

template <class Key>
void TokenCounter<Key>::add_document(const Key* tokens, int64_t count) {
  ++num_documents_;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t hash = hash_key(tokens[i]);
    int64_t number = index_.find(tokens[i], hash);
    if (number < 0) {
      number = index_.insert(kept(tokens[i]), hash).first;
      counts_.emplace_back();
    }
    Count& counted = counts_[static_cast<size_t>(number)];
    ++counted.occurrences;
    if (counted.last_document != num_documents_) ++counted.documents;
    counted.last_document = num_documents_;
  }
}

template <class Key>
typename TokenCounter<Key>::Counted TokenCounter<Key>::most_frequent(
    int64_t max_tokens, const std::vector<Key>& left_out) const {
  const std::vector<Key>& keys = index_.keys();
  std::vector<size_t> order;
  order.reserve(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    if (std::find(left_out.begin(), left_out.end(), keys[i]) == left_out.end()) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (counts_[a].occurrences != counts_[b].occurrences) {
      return counts_[a].occurrences > counts_[b].occurrences;
    }
    return keys[a] > keys[b];
  });
  order.resize(std::min(order.size(), static_cast<size_t>(max_tokens)));

  Counted counted;
  for (const size_t i : order) {
    counted.tokens.keys.push_back(keys[i]);
    counted.documents.push_back(counts_[i].documents);
  }
  counted.tokens.source = TokenSource::kLearned;
  own(counted.tokens);
  return counted;
}

template class TokenCounter<std::string_view>;
template class TokenCounter<int64_t>;

}  // namespace cohort::internal
