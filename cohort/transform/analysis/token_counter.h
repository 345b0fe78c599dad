// Amounts of more tokens than memory holds: a table, written to a file whenever it is full.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/files/file_system.h"
#include "cohort/transform/analysis/token_blocks.h"
#include "cohort/transform/analysis/token_table.h"

namespace cohort::internal {

// Files of sorted entries; so many of them that are merged at once are merged to one.
// Thread safety: none.
template <class Amount, class Order>
class TokenRuns {
 public:
  TokenRuns(FileSystem& files, std::string directory)
      : files_(files), directory_(std::move(directory)) {}

  // Writes the stream, which has the order, to a run. Errors: those of TokenRun::write.
  void add(TokenStream<Amount>& stream);
  // Takes the runs of another one.
  void take(TokenRuns& other);
  bool empty() const { return runs_.empty(); }
  // A stream of each run.
  std::vector<TokenStreamPtr<Amount>> read() const;

 private:
  // Their buffers are a few MiB. Of each number of merges there are fewer runs.
  static constexpr size_t kMostMerged = 64;
  struct Run {
    std::unique_ptr<TokenRun> file;
    int merges = 0;  // that its entries have been through
  };
  void merge_some();
  int most_merges() const;

  FileSystem& files_;
  const std::string directory_;
  std::vector<Run> runs_;
};

// Thread safety: none.
template <class Amount>
class TokenAmountCounter {
 public:
  // The table takes about `memory_limit` bytes at most; with one token more if it is longer.
  TokenAmountCounter(FileSystem& files, std::string directory, size_t memory_limit)
      : runs_(files, std::move(directory)), memory_limit_(memory_limit) {}

  // Adds amount_of(i) of token i. Errors: those of TokenRun::write.
  template <class AmountOf>
  void add(std::span<const std::string_view> tokens, const AmountOf& amount_of) {
    constexpr size_t kBlock = 256;
    int64_t numbers[kBlock];
    for (size_t begin = 0; begin < tokens.size(); begin += kBlock) {
      const auto block = tokens.subspan(begin, std::min(kBlock, tokens.size() - begin));
      table_->find(block, numbers);
      for (size_t i = 0; i < block.size(); ++i) {
        if (numbers[i] >= 0) {
          table_->add(static_cast<size_t>(numbers[i]), amount_of(begin + i));
        } else if (add_new(block[i], amount_of(begin + i))) {
          table_->find(block, numbers);  // the table was written away
        }
      }
      if (table_->bytes() > memory_limit_) spill();  // of a known token the amount may grow
    }
  }
  template <class Added>
  void add(std::string_view token, const Added& amount) {
    add_new(token, amount);
  }
  // Takes what the other has.
  void merge(TokenAmountCounter& other);

  // The sum of each token, in the order of tokens. Nothing may be added while it is read.
  TokenStreamPtr<Amount> sorted() const;

 private:
  // Adds of a token that is perhaps not in the table; whether the table is another one now.
  template <class Added>
  bool add_new(std::string_view token, const Added& amount) {
    table_->add(table_->number_of(token), amount);
    if (table_->bytes() <= memory_limit_) return false;
    spill();
    return true;
  }
  void spill();

  TokenRuns<Amount, ByToken> runs_;
  std::unique_ptr<TokenAmountTable<Amount>> table_ = std::make_unique<TokenAmountTable<Amount>>();
  const size_t memory_limit_;
};

}  // namespace cohort::internal
