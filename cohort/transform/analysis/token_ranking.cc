#include "cohort/transform/analysis/token_ranking.h"

#include <algorithm>
#include <utility>

namespace cohort::internal {

template <class Final>
class TokenRanking<Final>::List final : public TokenStream<Final> {
 public:
  explicit List(const std::vector<TokenEntry<Final>>& entries) : entries_(entries) {}
  bool next() override {
    if (next_ == entries_.size()) return false;
    this->entry_ = entries_[next_++];
    return true;
  }

 private:
  const std::vector<TokenEntry<Final>>& entries_;
  size_t next_ = 0;
};

template <class Final>
void TokenRanking<Final>::add(std::string_view token, const Final& amount) {
  entries_.push_back({arena_->keep(token), amount});
  if (bytes() > options_.memory_limit) make_room();
}

template <class Final>
size_t TokenRanking<Final>::bytes() const {
  return arena_->bytes() + grown_bytes(entries_.size(), sizeof(TokenEntry<Final>));
}

template <class Final>
void TokenRanking<Final>::make_room() {
  sort();
  cut();
  if (bytes() <= options_.memory_limit / 2) return;
  List list(entries_);
  runs_.add(list);
  entries_ = {};
  arena_ = std::make_unique<TextArena>();
}

template <class Final>
void TokenRanking<Final>::sort() {
  std::sort(entries_.begin(), entries_.end(), ByRank());
}

template <class Final>
void TokenRanking<Final>::cut() {
  if (static_cast<int64_t>(entries_.size()) <= options_.most) return;
  entries_.resize(static_cast<size_t>(options_.most));
  auto arena = std::make_unique<TextArena>();
  for (TokenEntry<Final>& entry : entries_) entry.token = arena->keep(entry.token);
  arena_ = std::move(arena);
}

template <class Final>
TokenStreamPtr<Final> TokenRanking<Final>::ranked() {
  sort();
  auto streams = runs_.read();
  streams.push_back(std::make_unique<List>(entries_));
  return std::make_unique<MergedTokens<Final, ByRank>>(std::move(streams));
}

template class TokenRanking<TokenCount>;
template class TokenRanking<FinalWeight>;

}  // namespace cohort::internal
