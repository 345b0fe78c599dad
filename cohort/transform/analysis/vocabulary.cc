// Vocabularies: a text file of tokens in the order of their frequencies.

#include <unordered_set>

#include "cohort/core/text.h"
#include "cohort/ops/make_tensor.h"
#include "cohort/transform/analysis/attributes.h"
#include "cohort/transform/analysis/lines_file.h"
#include "cohort/transform/analysis/simple_analysis.h"
#include "cohort/transform/analysis/token_accumulator.h"
#include "cohort/transform/analysis/token_ranking.h"

namespace cohort::internal {
namespace {

// What tf.Transform writes where there would be no line, of which tables cannot be made.
constexpr std::string_view kNoStrings = "49d0cd50-04bb-48c0-bc6f-5b575dce351a";
constexpr std::string_view kNoIntegers = "-1";

// Tokens that a line cannot hold.
bool is_line(std::string_view token) {
  return !token.empty() && token.find_first_of("\n\r") == std::string_view::npos;
}

template <class Amount>
class VocabularyAccumulator final : public TokenAccumulator<Amount> {
  using Final = typename Amount::Final;
  using Base = TokenAccumulator<Amount>;

 public:
  VocabularyAccumulator(std::string name, const AnalysisContext& context,
                        const VocabularyOptions& options)
      : Base(std::move(name), context), options_(options) {}

 private:
  AnalysisResult result() override {
    const AnalysisContext& context = this->context();
    const int64_t most = options_.top_k.value_or(std::numeric_limits<int64_t>::max());
    TokenRanking<Final> ranking(context.files, context.spill_directory,
                                {context.memory_limit / 2, most});
    rank(ranking);
    LinesFile file(context.files, context.output_directory);
    for (const std::string& token : options_.reserved_tokens) add_line(file, token, "-1");
    const std::unordered_set<std::string_view> reserved(options_.reserved_tokens.begin(),
                                                        options_.reserved_tokens.end());
    const TokenStreamPtr<Final> ranked = ranking.ranked();
    for (int64_t i = 0; i < most && ranked->next(); ++i) {
      const TokenEntry<Final>& entry = ranked->entry();
      if (reserved.contains(entry.token)) continue;  // one of the first top_k all the same
      add_line(file, entry.token, options_.store_frequency ? entry.amount.text() : "");
    }
    if (file.lines() == 0) add_line(file, this->has_strings() ? kNoStrings : kNoIntegers, "1");
    AnalysisResult result;
    result.file = file.finish();
    result.constants = {{"size", constant(result.file->lines, int64)}};
    return result;
  }

  void rank(TokenRanking<Final>& ranking) {
    const TokenStreamPtr<Amount> counted = this->counter().sorted();
    while (counted->next()) {
      const std::string_view token = counted->entry().token;
      if (!is_line(token)) continue;
      const Final amount = counted->entry().amount.final();
      if (options_.frequency_threshold && !amount.reaches(*options_.frequency_threshold)) continue;
      ranking.add(token, amount);
    }
  }

  void add_line(LinesFile& file, std::string_view token, std::string_view frequency) {
    if (!options_.store_frequency) return file.add(token);
    line_.assign(frequency);
    line_ += ' ';
    line_ += token;
    file.add(line_);
  }

  const VocabularyOptions options_;
  std::string line_;
};

void check(const VocabularyOptions& options) {
  if (options.top_k && *options.top_k <= 0) {
    throw InvalidArgumentError(str("top_k must be positive, but got: ", *options.top_k));
  }
  // Also where it is NaN.
  if (options.frequency_threshold && !(*options.frequency_threshold >= 0)) {
    throw InvalidArgumentError(
        str("frequency_threshold must be non-negative, but got: ", *options.frequency_threshold));
  }
  std::unordered_set<std::string_view> seen;
  for (const std::string& token : options.reserved_tokens) {
    if (!is_line(token)) {
      throw InvalidArgumentError(
          str("the reserved token ", quoted(token),
              " is empty or has a newline; a vocabulary has a token a line"));
    }
    if (!seen.insert(token).second) {
      throw InvalidArgumentError(str("the reserved token ", quoted(token), " is named twice"));
    }
  }
}

Attributes attributes_of(const VocabularyOptions& options) {
  Attributes attributes;
  if (options.top_k) attributes.emplace_back("top_k", *options.top_k);
  if (options.frequency_threshold) {
    attributes.emplace_back("frequency_threshold", *options.frequency_threshold);
  }
  attributes.emplace_back("weighted", options.weighted);
  attributes.emplace_back("store_frequency", options.store_frequency);
  attributes.emplace_back("reserved_tokens", options.reserved_tokens);
  return attributes;
}

}  // namespace

AnalysisPtr vocabulary_analysis(const VocabularyOptions& options) {
  check(options);
  return simple_analysis(
      {.kind = "vocabulary",
       .attributes = attributes_of(options),
       .num_inputs = options.weighted ? size_t{2} : size_t{1},
       .result_names = {"size"},
       .writes_file = true,
       .uses_memory_limit = true},
      [options](std::string name, const AnalysisContext& context) -> std::unique_ptr<Accumulator> {
        if (options.weighted) {
          return std::make_unique<VocabularyAccumulator<ExactWeight>>(std::move(name), context,
                                                                      options);
        }
        return std::make_unique<VocabularyAccumulator<TokenCount>>(std::move(name), context,
                                                                   options);
      });
}

}  // namespace cohort::internal
