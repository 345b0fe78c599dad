#include "cohort/transform/analysis/token_counter.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace cohort::internal {

template <class Amount, class Order>
void TokenRuns<Amount, Order>::add(TokenStream<Amount>& stream) {
  runs_.push_back({TokenRun::write(files_, directory_, stream), 0});
  merge_some();
}

template <class Amount, class Order>
void TokenRuns<Amount, Order>::take(TokenRuns& other) {
  runs_.insert(runs_.end(), std::make_move_iterator(other.runs_.begin()),
               std::make_move_iterator(other.runs_.end()));
  other.runs_.clear();
  merge_some();
}

// Merges only runs that went through equally many merges, so that an entry is written once for each
// power of kMostMerged among the runs.
template <class Amount, class Order>
void TokenRuns<Amount, Order>::merge_some() {
  for (int merges = 0; !runs_.empty() && merges <= most_merges(); ++merges) {
    const auto begin = std::partition(runs_.begin(), runs_.end(),
                                      [&](const Run& run) { return run.merges != merges; });
    if (static_cast<size_t>(runs_.end() - begin) < kMostMerged) continue;
    std::vector<TokenStreamPtr<Amount>> streams;
    for (auto run = begin; run != runs_.end(); ++run) {
      streams.push_back(run->file->template read<Amount>());
    }
    MergedTokens<Amount, Order> merged(std::move(streams));
    auto file = TokenRun::write(files_, directory_, merged);
    runs_.erase(begin, runs_.end());
    runs_.push_back({std::move(file), merges + 1});
  }
}

template <class Amount, class Order>
int TokenRuns<Amount, Order>::most_merges() const {
  int most = 0;
  for (const Run& run : runs_) most = std::max(most, run.merges);
  return most;
}

template <class Amount, class Order>
std::vector<TokenStreamPtr<Amount>> TokenRuns<Amount, Order>::read() const {
  std::vector<TokenStreamPtr<Amount>> streams;
  for (const Run& run : runs_) streams.push_back(run.file->template read<Amount>());
  return streams;
}

template <class Amount>
void TokenAmountCounter<Amount>::spill() {
  if (table_->size() == 0) return;
  const TokenStreamPtr<Amount> sorted = table_->sorted();
  runs_.add(*sorted);
  table_ = std::make_unique<TokenAmountTable<Amount>>();
}

template <class Amount>
void TokenAmountCounter<Amount>::merge(TokenAmountCounter& other) {
  runs_.take(other.runs_);
  auto table = std::exchange(other.table_, std::make_unique<TokenAmountTable<Amount>>());
  if (table_->size() == 0) {
    table_.swap(table);
    return;
  }
  const TokenStreamPtr<Amount> entries = table->sorted();
  while (entries->next()) add_new(entries->entry().token, entries->entry().amount);
}

template <class Amount>
TokenStreamPtr<Amount> TokenAmountCounter<Amount>::sorted() const {
  auto streams = runs_.read();
  if (streams.empty()) return table_->sorted();
  streams.push_back(table_->sorted());
  return std::make_unique<MergedTokens<Amount, ByToken>>(std::move(streams));
}

template class TokenRuns<TokenCount, ByToken>;
template class TokenRuns<ExactWeight, ByToken>;
template class TokenRuns<TokenCount, ByRank>;
template class TokenRuns<FinalWeight, ByRank>;
template class TokenAmountCounter<TokenCount>;
template class TokenAmountCounter<ExactWeight>;

}  // namespace cohort::internal
