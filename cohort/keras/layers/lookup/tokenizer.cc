#include "cohort/keras/layers/lookup/tokenizer.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

using Split = TokenizerOptions::Split;

constexpr std::string_view kPunctuation = "!\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~'";
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// What the tokens of a batch lie in.
struct TokenMemory {
  std::string text;                     // all texts, standardized
  std::deque<std::string> made;         // n-grams, and tokens that functions gave
  std::optional<StringTensor> texts;    // where the tokens are of texts as they came
  std::vector<std::string_view> views;  // of the result
};

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

char lowered(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// The bytes of the UTF-8 character that `text` begins with; 0: it is none.
size_t character_size(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t size = lead < 0x80                   ? 1
                      : lead >= 0xC2 && lead < 0xE0 ? 2
                      : lead >= 0xE0 && lead < 0xF0 ? 3
                      : lead >= 0xF0 && lead < 0xF5 ? 4
                                                    : 0;
  if (size == 0 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  }
  return size;
}

// Appends `text` without what is stripped, and returns where it lies now; memory.text has room.
std::string_view standardized(std::string_view text, const TokenizerOptions& options,
                              TokenMemory& memory) {
  const size_t begin = memory.text.size();
  for (const char c : text) {
    if (options.strip_punctuation && kPunctuation.find(c) != kPunctuation.npos) continue;
    memory.text += options.lower ? lowered(c) : c;
  }
  return std::string_view(memory.text).substr(begin);
}

void split_text(std::string_view text, const TokenizerOptions& options, TokenMemory& memory,
                std::vector<std::string_view>& tokens) {
  if (options.split) {
    for (std::string& token : options.split(text)) {
      tokens.push_back(memory.made.emplace_back(std::move(token)));
    }
  } else if (options.by == Split::kCharacter) {
    while (!text.empty()) {
      const size_t size = character_size(text);
      tokens.push_back(size == 0 ? kReplacement : text.substr(0, size));
      text.remove_prefix(std::max<size_t>(size, 1));
    }
  } else {
    for (size_t i = 0; i < text.size();) {
      while (i < text.size() && is_blank(text[i])) ++i;
      const size_t begin = i;
      while (i < text.size() && !is_blank(text[i])) ++i;
      if (i > begin) tokens.push_back(text.substr(begin, i - begin));
    }
  }
}

// The n-grams of each length in turn: neighbours joined by a blank.
std::vector<std::string_view> ngrams_of(const std::vector<std::string_view>& tokens,
                                        const std::vector<int64_t>& lengths, TokenMemory& memory) {
  std::vector<std::string_view> grams;
  for (const int64_t length : lengths) {
    const auto count = static_cast<size_t>(length);
    for (size_t i = 0; i + count <= tokens.size(); ++i) {
      if (count == 1) {
        grams.push_back(tokens[i]);
        continue;
      }
      std::string& gram = memory.made.emplace_back(tokens[i]);
      for (size_t k = 1; k < count; ++k) gram.append(1, ' ').append(tokens[i + k]);
      grams.push_back(gram);
    }
  }
  return grams;
}

}  // namespace

StringTensor Tokenizer::operator()(const StringTensor& given, const std::string& layer) const {
  const auto memory = std::make_shared<TokenMemory>();
  StringTensor texts = options_.standardize ? options_.standardize(given) : given;
  const bool changes = !options_.standardize && (options_.lower || options_.strip_punctuation);
  std::vector<std::string_view> standard(texts.data(), texts.data() + texts.numel());
  if (changes) {
    size_t bytes = 0;
    for (const std::string_view text : standard) bytes += text.size();
    memory->text.reserve(bytes);  // the views into it must stay
    for (std::string_view& text : standard) text = standardized(text, options_, *memory);
  } else {
    memory->texts = texts;
  }
  std::vector<int64_t> shape = texts.sizes();
  if (!options_.splits() && options_.ngrams.empty()) {
    memory->views = std::move(standard);
    return StringTensor::over(memory, memory->views.data(), std::move(shape));
  }
  if (options_.splits()) {
    if (shape.size() == 2 && shape[1] == 1) shape.pop_back();
    if (shape.size() > 1) {
      throw InvalidArgumentError(str(layer, " splits texts of shape [], [n] or [n, 1], but got ",
                                     shape_str(texts.sizes()),
                                     "; with .split = nullptr they are tokens already"));
    }
  } else if (shape.empty()) {
    throw InvalidArgumentError(str(layer, " makes n-grams of lists of tokens, but got one token"));
  }
  // Rows of tokens: of each text, or the last dimension.
  const int64_t width = options_.splits() ? 1 : std::exchange(shape.back(), 0);
  if (!options_.splits()) shape.pop_back();
  const auto num_rows =
      static_cast<size_t>(width == 0 ? 0 : static_cast<int64_t>(standard.size()) / width);
  std::vector<std::vector<std::string_view>> rows(num_rows);
  size_t longest = 0;
  for (size_t r = 0; r < num_rows; ++r) {
    std::vector<std::string_view>& row = rows[r];
    if (options_.splits()) {
      split_text(standard[r], options_, *memory, row);
    } else {
      const auto begin = standard.begin() + static_cast<int64_t>(r) * width;
      row.assign(begin, begin + width);
    }
    if (!options_.ngrams.empty()) row = ngrams_of(row, options_.ngrams, *memory);
    longest = std::max(longest, row.size());
  }
  memory->views.assign(num_rows * longest, "");
  for (size_t r = 0; r < num_rows; ++r) {
    std::copy(rows[r].begin(), rows[r].end(),
              memory->views.begin() + static_cast<int64_t>(r * longest));
  }
  shape.push_back(static_cast<int64_t>(longest));
  return StringTensor::over(memory, memory->views.data(), std::move(shape));
}

}  // namespace cohort::internal
