#include "models/translations.h"

#include <numeric>
#include <utility>
#include <vector>

#include "models/draws.h"

namespace models {
namespace {

namespace tf = cohort;

enum Id : int64_t { kNoWord, kStart, kEnd, kFirstId };
constexpr uint64_t kDictionarySeed = 11;  // one dictionary for all seeds of rows
constexpr int64_t kFewestWords = 3;

std::vector<int64_t> make_dictionary(int64_t words) {
  std::vector<int64_t> dictionary(static_cast<size_t>(words));
  std::iota(dictionary.begin(), dictionary.end(), 0);
  Draws(kDictionarySeed).shuffle(dictionary);
  return dictionary;
}

bool is_adjective(int64_t word) { return word % 2 == 0; }

std::vector<int64_t> translate(std::vector<int64_t> sentence,
                               const std::vector<int64_t>& dictionary) {
  for (size_t i = 0; i + 1 < sentence.size(); ++i) {
    if (is_adjective(sentence[i]) && !is_adjective(sentence[i + 1])) {
      std::swap(sentence[i], sentence[i + 1]);
      ++i;
    }
  }
  for (int64_t& word : sentence) word = dictionary[static_cast<size_t>(word)];
  return sentence;
}

}  // namespace

Rows make_translations(int64_t rows, const TranslationOptions& options) {
  const std::vector<int64_t> dictionary = make_dictionary(options.words);
  Draws draws(options.seed);
  const int64_t steps = options.longest + 1;
  const tf::Tensor source = tf::zeros({rows, options.longest}, tf::int64);
  const tf::Tensor target = tf::zeros({rows, steps}, tf::int64);
  const tf::Tensor labels = tf::zeros({rows, steps}, tf::int64);
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<int64_t> sentence(
        static_cast<size_t>(draws.between(kFewestWords, options.longest)));
    for (int64_t& word : sentence) word = draws.below(options.words);
    int64_t* const said = target.data_ptr<int64_t>() + row * steps;
    int64_t* const next = labels.data_ptr<int64_t>() + row * steps;
    int64_t* out = source.data_ptr<int64_t>() + row * options.longest;
    for (const int64_t word : sentence) *out++ = kFirstId + word;
    said[0] = kStart;
    const std::vector<int64_t> translated = translate(sentence, dictionary);
    for (size_t i = 0; i < translated.size(); ++i) {
      next[i] = said[i + 1] = kFirstId + translated[i];
    }
    next[translated.size()] = kEnd;
  }
  const tf::Tensor weights = tf::cast(labels != static_cast<int64_t>(kNoWord), tf::float32);
  return {tf::dict({{"source", source}, {"target", target}}), labels, weights / weights.mean()};
}

int64_t translation_vocabulary(int64_t words) { return words + kFirstId; }

}  // namespace models
