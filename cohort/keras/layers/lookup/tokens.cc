#include "cohort/keras/layers/lookup/tokens.h"

#include <ATen/ops/tensor.h>

#include <type_traits>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/ops/lookup/text_lines.h"
#include "cohort/ops/vocabulary/text_chunks.h"

namespace cohort {
namespace internal {
namespace {

std::string describe(const Leaf& leaf) {
  if (leaf.is_tensor()) return internal::describe(leaf.tensor());
  return str("string ", shape_str(leaf.sizes()));
}

void set_keys(Tokens<std::string_view>& tokens, const TextLines& text, const std::string&) {
  tokens.keys = text.lines;
}

void set_keys(Tokens<int64_t>& tokens, const TextLines& text, const std::string& path) {
  tokens.keys.reserve(text.lines.size());
  for (size_t i = 0; i < text.lines.size(); ++i) {
    if (const auto key = parse_number<int64_t>(text.lines[i])) {
      tokens.keys.push_back(*key);
      continue;
    }
    throw InvalidArgumentError(str(line_place(path, text, i), " has ", quoted(text.lines[i]),
                                   ", which is no int64; a vocabulary has one token a line"));
  }
}

// Integers are read: a number has more than one text.
template <class Key>
std::shared_ptr<const MappedVocabulary> map_file(const std::string& path,
                                                 const std::string& layer) {
  if constexpr (std::is_same_v<Key, int64_t>) return nullptr;
  try {
    return MappedVocabulary::open(path);
  } catch (const RepeatedTokenError& error) {
    throw InvalidArgumentError(str(layer, ": a vocabulary has each token once, but ",
                                   quoted(error.token()), " is at ", error.first(),
                                   " and again at ", error.second()));
  }
}

template <class Key>
Tokens<Key> read_file_that_exists(const std::string& path, const std::string& layer) {
  Tokens<Key> tokens;
  tokens.source = TokenSource::kFile;
  tokens.mapped = map_file<Key>(path, layer);
  if (tokens.mapped != nullptr) {
    tokens.place = [mapped = tokens.mapped](size_t i) {
      return mapped->place(static_cast<int64_t>(i));
    };
    return tokens;
  }
  const auto text = std::make_shared<const TextLines>(read_text_lines(path));
  set_keys(tokens, *text, path);
  tokens.memory = text->bytes;
  // Lines are found again only where a message needs one.
  tokens.place = [bytes = text->bytes, path](size_t i) {
    size_t begin = 0;
    for (size_t line = 0; line < i; ++line) begin = bytes->find('\n', begin) + 1;
    return line_place(path, i, begin);
  };
  return tokens;
}

template <class Key>
Tokens<Key> read_file(const std::string& path, const std::string& layer) {
  try {
    return read_file_that_exists<Key>(path, layer);
  } catch (const NotFoundError&) {
    throw InvalidArgumentError(
        str(layer, ": the vocabulary file ", quoted(path), " does not exist"));
  }
}

}  // namespace

std::string show(std::string_view key) { return quoted(key); }
std::string show(int64_t key) { return str(key); }

template <>
Keys<std::string_view> keys_of(const Leaf& leaf, const std::string& what) {
  if (!leaf.is_strings()) {
    throw InvalidArgumentError(str(what, " takes strings, but got ", describe(leaf)));
  }
  return {leaf.strings().data(), leaf.strings().numel(), leaf};
}

template <>
Keys<int64_t> keys_of(const Leaf& leaf, const std::string& what) {
  if (!leaf.is_tensor()) {
    throw InvalidArgumentError(str(what, " takes integers, but got ", describe(leaf)));
  }
  Tensor numbers = leaf.tensor();
  if (numbers.scalar_type() != int64 || !numbers.device().is_cpu()) {
    numbers = numbers.detach().to(c10::TensorOptions().dtype(int64).device(c10::kCPU));
  }
  numbers = numbers.contiguous();
  const auto* data = numbers.data_ptr<int64_t>();
  const int64_t count = numbers.numel();
  return {data, count, std::move(numbers)};
}

template <class Key>
Tokens<Key> read_vocabulary(const VocabularySource& source, const std::string& layer) {
  if (const auto* file = std::get_if<VocabularyFile>(&source)) {
    return read_file<Key>(file->path, layer);
  }
  const Leaf& leaf = std::get<Leaf>(source);
  if (leaf.dim() != 1) {
    throw InvalidArgumentError(
        str(layer, ": a vocabulary has one dimension, but got ", describe(leaf)));
  }
  if (leaf.is_tensor() && !at::isIntegralType(leaf.tensor().scalar_type(), false)) {
    throw InvalidArgumentError(
        str(layer, ": a vocabulary is of strings or integers, but got ", describe(leaf)));
  }
  const Keys<Key> keys = keys_of<Key>(leaf, str(layer, "'s vocabulary"));
  Tokens<Key> tokens;
  tokens.keys.assign(keys.data, keys.data + keys.count);
  tokens.memory = std::make_shared<const Leaf>(keys.memory);
  return tokens;
}
template Tokens<std::string_view> read_vocabulary(const VocabularySource&, const std::string&);
template Tokens<int64_t> read_vocabulary(const VocabularySource&, const std::string&);

}  // namespace internal

namespace keras::layers {

IntegerVocabulary::IntegerVocabulary(const std::vector<int64_t>& tokens)
    : source_(at::tensor(tokens, at::dtype(at::kLong))) {}

}  // namespace keras::layers
}  // namespace cohort
