// Tokens with their amounts, one after another in some order; streams that are sorted are merged.
#pragma once

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/transform/analysis/token_amounts.h"

namespace cohort::internal {

template <class Amount>
struct TokenEntry {
  std::string_view token;
  Amount amount;
};

// Thread safety: none.
template <class Amount>
class TokenStream {
 public:
  virtual ~TokenStream() = default;
  // Goes on to the next entry; false at the end. Errors: those of where the entries come from.
  virtual bool next() = 0;
  // The entry, whose token lies in memory that lives until the next call. Its amount may be moved.
  TokenEntry<Amount>& entry() { return entry_; }

 protected:
  TokenEntry<Amount> entry_ = {};
};
template <class Amount>
using TokenStreamPtr = std::unique_ptr<TokenStream<Amount>>;

// Orders of entries, as std::sort takes them.
struct ByToken {
  template <class Amount>
  bool operator()(const TokenEntry<Amount>& a, const TokenEntry<Amount>& b) const {
    return a.token < b.token;
  }
};
// The most first; of equal amounts the greatest token first.
struct ByRank {
  template <class Amount>
  bool operator()(const TokenEntry<Amount>& a, const TokenEntry<Amount>& b) const {
    if (a.amount.is_above(b.amount)) return true;
    return !b.amount.is_above(a.amount) && a.token > b.token;
  }
};

// One stream of several that have the order. Of a token that several have side by side, it has one
// entry with the sum.
template <class Amount, class Order>
class MergedTokens final : public TokenStream<Amount> {
 public:
  explicit MergedTokens(std::vector<TokenStreamPtr<Amount>> streams)
      : streams_(std::move(streams)) {
    for (const auto& stream : streams_) used_.push_back(stream.get());
  }

  bool next() override {
    // Only now, because the entry's token lay in one of them.
    for (TokenStream<Amount>* const stream : used_) {
      if (!stream->next()) continue;
      heap_.push_back(stream);
      std::push_heap(heap_.begin(), heap_.end(), is_later);
    }
    used_.clear();
    if (heap_.empty()) return false;
    this->entry_ = std::move(take_first().entry());
    while (!heap_.empty() && heap_.front()->entry().token == this->entry_.token) {
      this->entry_.amount.add(take_first().entry().amount);
    }
    return true;
  }

 private:
  static bool is_later(TokenStream<Amount>* a, TokenStream<Amount>* b) {
    return Order()(b->entry(), a->entry());
  }
  TokenStream<Amount>& take_first() {
    std::pop_heap(heap_.begin(), heap_.end(), is_later);
    used_.push_back(heap_.back());
    heap_.pop_back();
    return *used_.back();
  }

  const std::vector<TokenStreamPtr<Amount>> streams_;
  std::vector<TokenStream<Amount>*> heap_;  // the first one in the order at the front
  std::vector<TokenStream<Amount>*> used_;  // whose entries were returned
};

}  // namespace cohort::internal
