#include "models/masked_sentences.h"

#include <algorithm>
#include <vector>

#include "models/draws.h"

namespace models {
namespace {

namespace tf = cohort;

enum Token : int64_t { kPadding, kClass, kSeparator, kMask, kFirstWord };
constexpr int64_t kTopics = 8;
constexpr int64_t kShortest = 5;

// A row of tokens with the places of its words.
struct Pair {
  std::vector<int64_t> tokens = {kClass};
  std::vector<int64_t> word_places;
  int64_t second = 0;  // where the second sentence begins
};

void add_sentence(Pair& pair, int64_t topic, int64_t length, const MaskedSentenceOptions& options,
                  Draws& draws) {
  const int64_t topic_words = options.words / kTopics;
  int64_t word = draws.below(topic_words);
  for (int64_t i = 0; i < length; ++i) {
    pair.word_places.push_back(static_cast<int64_t>(pair.tokens.size()));
    pair.tokens.push_back(kFirstWord + topic * topic_words + word);
    word = (word + (draws.below(2) == 0 ? 1 : 3)) % topic_words;
  }
  pair.tokens.push_back(kSeparator);
}

Pair draw_pair(const MaskedSentenceOptions& options, Draws& draws) {
  Pair pair;
  const int64_t topic = draws.below(kTopics);
  const int64_t longest = (options.length - 3) / 2;
  add_sentence(pair, topic, draws.between(kShortest, longest), options, draws);
  pair.second = static_cast<int64_t>(pair.tokens.size());
  add_sentence(pair, topic, draws.between(kShortest, longest), options, draws);
  return pair;
}

// What the model sees in place of a word that it is to name.
int64_t disguise(int64_t word, const MaskedSentenceOptions& options, Draws& draws) {
  const int64_t tenth = draws.below(10);
  if (tenth < 8) return kMask;
  return tenth == 8 ? kFirstWord + draws.below(options.words) : word;
}

}  // namespace

Rows make_masked_sentences(int64_t rows, const MaskedSentenceOptions& options) {
  Draws draws(options.seed);
  const tf::Tensor tokens = tf::zeros({rows, options.length}, tf::int64);
  const tf::Tensor segments = tf::zeros({rows, options.length}, tf::int64);
  const tf::Tensor places = tf::zeros({rows, options.masked}, tf::int64);
  const tf::Tensor labels = tf::zeros({rows, options.masked}, tf::int64);
  const tf::Tensor weights = tf::zeros({rows, options.masked});
  for (int64_t row = 0; row < rows; ++row) {
    Pair pair = draw_pair(options, draws);
    draws.shuffle(pair.word_places);
    const auto share = static_cast<int64_t>(0.15 * static_cast<double>(pair.word_places.size()));
    const int64_t count = std::clamp<int64_t>(share, 1, options.masked);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t place = pair.word_places[static_cast<size_t>(i)];
      int64_t& token = pair.tokens[static_cast<size_t>(place)];
      places.data_ptr<int64_t>()[row * options.masked + i] = place;
      labels.data_ptr<int64_t>()[row * options.masked + i] = token;
      weights.data_ptr<float>()[row * options.masked + i] = 1;
      token = disguise(token, options, draws);
    }
    std::copy(pair.tokens.begin(), pair.tokens.end(),
              tokens.data_ptr<int64_t>() + row * options.length);
    std::fill(segments.data_ptr<int64_t>() + row * options.length + pair.second,
              segments.data_ptr<int64_t>() + row * options.length +
                  static_cast<int64_t>(pair.tokens.size()),
              1);
  }
  return {tf::dict({{"tokens", tokens}, {"segments", segments}, {"places", places}}), labels,
          weights / weights.mean()};
}

}  // namespace models
