// Tokens in order, wherever they come from, and where each stands.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/keras/layers/lookup/vocabulary.h"
#include "cohort/ops/vocabulary/mapped_vocabulary.h"

namespace cohort::internal {

enum class TokenSource { kGiven, kFile, kLearned };

// Key is std::string_view or int64_t.
template <class Key>
struct Tokens {
  std::vector<Key> keys;
  // In place of the keys: those of a large file.
  std::shared_ptr<const MappedVocabulary> mapped = nullptr;
  std::shared_ptr<const void> memory = nullptr;  // what the views show
  TokenSource source = TokenSource::kGiven;
  // The place of token `i`, for messages: "index 3", "'words.txt', line 4 (byte offset 17)".
  std::function<std::string(size_t i)> place = [](size_t i) { return str("index ", i); };

  size_t size() const {
    return mapped == nullptr ? keys.size() : static_cast<size_t>(mapped->index().size());
  }
};

// A leaf's elements as keys, one after another.
template <class Key>
struct Keys {
  const Key* data = nullptr;
  int64_t count = 0;
  Leaf memory;
};
// Strings, or numbers rounded towards zero.
// Errors: InvalidArgument (the other kind of leaf; `what` names what it is for).
template <class Key>
Keys<Key> keys_of(const Leaf& leaf, const std::string& what);
template <>
Keys<std::string_view> keys_of(const Leaf& leaf, const std::string& what);
template <>
Keys<int64_t> keys_of(const Leaf& leaf, const std::string& what);

// What a layer of class `layer` was given; not none.
// Errors: InvalidArgument (not of rank 1, not of Key's kind; no such file; an empty line or one
// that is no integer: names file, line and byte offset); of reading: as FileSystem.
template <class Key>
Tokens<Key> read_vocabulary(const VocabularySource& source, const std::string& layer);

// A key as messages show it: 'word', 12.
std::string show(std::string_view key);
std::string show(int64_t key);

}  // namespace cohort::internal
