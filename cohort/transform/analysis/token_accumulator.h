// What the analyses that count tokens have in common.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/transform/analysis/accumulator.h"
#include "cohort/transform/analysis/token_column.h"
#include "cohort/transform/analysis/token_counter.h"

namespace cohort::internal {

// Counts the tokens of the first column, or sums the second one's weights of them.
template <class Amount>
class TokenAccumulator : public Accumulator {
 protected:
  static constexpr bool kIsWeighted = std::is_same_v<Amount, ExactWeight>;

  // Half of the memory is for the table. The other half is what results are made in.
  TokenAccumulator(std::string name, const AnalysisContext& context)
      : Accumulator(std::move(name), kIsWeighted ? 2 : 1),
        context_(context),
        counter_(context.files, context.spill_directory, context.memory_limit / 2),
        is_text_(true) {}

  const AnalysisContext& context() const { return context_; }
  bool has_strings() const { return is_text_; }
  const TokenAmountCounter<Amount>& counter() const { return counter_; }

  void add_columns(std::span<const ColumnBatch> columns) override {
    std::span<const std::string_view> tokens;
    std::vector<double> weights;
    try {
      tokens = column_.take(columns[0]);
      if constexpr (kIsWeighted) weights = weights_of_values(columns[0], columns[1]);
    } catch (const InvalidArgumentError& error) {
      fail(error.what());
    }
    is_text_ = columns[0].values.is_strings();
    if constexpr (kIsWeighted) {
      counter_.add(tokens, [&](size_t i) { return weights[i]; });
    } else {
      counter_.add(tokens, [](size_t) { return TokenCount{1}; });
    }
  }
  void merge_same(Accumulator& accumulator) override {
    auto& other = static_cast<TokenAccumulator&>(accumulator);
    is_text_ &= other.is_text_;
    counter_.merge(other.counter_);
  }

  std::unique_ptr<SavedPieces> payloads() override { return std::make_unique<Pieces>(*this); }
  void add_payload(std::string_view payload, std::string_view source) override {
    if (payload.empty()) throw DataLossError(str(source, " is empty"));
    is_text_ &= payload.front() != 0;
    TokenBlock<Amount> block(payload.substr(1), std::string(source));
    while (block.next()) counter_.add(block.entry().token, block.entry().amount);
  }

 private:
  // A byte that says whether the tokens are strings, then a block of tokens.
  class Pieces final : public SavedPieces {
   public:
    explicit Pieces(const TokenAccumulator& of)
        : stream_(of.counter_.sorted()), kind_(of.is_text_ ? '\1' : '\0') {}
    std::optional<std::string> next() override {
      if (stream_ == nullptr) return std::nullopt;
      TokenBlockWriter block;
      while (block.size() < kPieceBytes) {
        if (!stream_->next()) {
          stream_ = nullptr;
          break;
        }
        block.add(stream_->entry());
      }
      return kind_ + block.take();
    }

   private:
    TokenStreamPtr<Amount> stream_;
    const char kind_;
  };

  const AnalysisContext context_;
  TokensOfColumn column_;
  TokenAmountCounter<Amount> counter_;
  bool is_text_;  // whether all tokens so far were strings
};

}  // namespace cohort::internal
