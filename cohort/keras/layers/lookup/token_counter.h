// How often each token occurs in a data set, and in how many documents: what adapt learns from.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/keras/layers/lookup/tokens.h"
#include "cohort/ops/lookup/key_index.h"

namespace cohort::internal {

// Keeps each distinct token once. Key is std::string_view or int64_t. Thread safety: none.
template <class Key>
class TokenCounter {
 public:
  // The tokens of one document.
  void add_document(const Key* tokens, int64_t count);

  struct Counted {
    Tokens<Key> tokens;
    std::vector<int64_t> documents;  // that have each token
  };
  // The most frequent tokens first; those of one number with the greatest token first. At most
  // `max_tokens`, without those in `left_out`.
  Counted most_frequent(int64_t max_tokens, const std::vector<Key>& left_out) const;

  int64_t num_documents() const { return num_documents_; }

 private:
  struct Count {
    int64_t occurrences = 0;
    int64_t documents = 0;
    int64_t last_document = 0;  // from 1
  };

  Key kept(Key token);

  KeyIndex<Key> index_;
  std::vector<Count> counts_;
  std::deque<std::string> strings_;  // where the index's views point
  int64_t num_documents_ = 0;
};

}  // namespace cohort::internal
