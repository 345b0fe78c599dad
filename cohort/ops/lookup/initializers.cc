#include "cohort/ops/lookup/initializers.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/core/text.h"
#include "cohort/ops/lookup/text_lines.h"
#include "cohort/ops/vocabulary/mapped_vocabulary.h"

namespace cohort {
namespace lookup {
namespace {

using internal::quoted;
using internal::str;
using internal::TextLines;

std::string describe(const Leaf& leaf) {
  if (leaf.is_tensor()) return internal::describe(leaf.tensor());
  return str("string ", internal::shape_str(leaf.sizes()));
}

// Fields of all lines, as views of the file's bytes.
std::vector<std::string_view> column(const std::string& path, const TextLines& text, int64_t index,
                                     char delimiter) {
  if (index == TextFileIndex::WHOLE_LINE) return text.lines;
  std::vector<std::string_view> fields;
  fields.reserve(text.lines.size());
  for (size_t line = 0; line < text.lines.size(); ++line) {
    std::string_view rest = text.lines[line];
    for (int64_t skipped = 0; skipped < index; ++skipped) {
      const size_t end = rest.find(delimiter);
      if (end == std::string_view::npos) {
        throw InvalidArgumentError(str(internal::line_place(path, text, line), " has ", skipped + 1,
                                       " columns, but column ", index,
                                       " is asked for; columns count from 0 and are separated by ",
                                       quoted(std::string_view(&delimiter, 1))));
      }
      rest.remove_prefix(end + 1);
    }
    fields.push_back(rest.substr(0, rest.find(delimiter)));
  }
  return fields;
}

StringTensor strings_of(const TextLines& text, std::vector<std::string_view> fields) {
  struct Memory {
    std::shared_ptr<const std::string> bytes;
    std::vector<std::string_view> fields;
  };
  auto memory = std::make_shared<const Memory>(Memory{text.bytes, std::move(fields)});
  const auto count = static_cast<int64_t>(memory->fields.size());
  const std::string_view* values = memory->fields.data();
  return StringTensor::over(std::move(memory), values, {count});
}

template <class Number>
Tensor numbers_of(const std::string& path, const TextLines& text,
                  const std::vector<std::string_view>& fields, DType dtype) {
  Tensor numbers = at::empty({static_cast<int64_t>(fields.size())}, dtype);
  auto* out = static_cast<Number*>(numbers.data_ptr());
  for (size_t i = 0; i < fields.size(); ++i) {
    if (const auto number = internal::parse_number<Number>(fields[i])) {
      out[i] = *number;
      continue;
    }
    throw InvalidArgumentError(str(internal::line_place(path, text, i), " has ", quoted(fields[i]),
                                   ", which is no ", internal::dtype_name(dtype)));
  }
  return numbers;
}

Leaf parse(const std::string& path, const TextLines& text, int64_t index, LeafType type,
           char delimiter) {
  std::vector<std::string_view> fields = column(path, text, index, delimiter);
  if (type.is_string()) return strings_of(text, std::move(fields));
  switch (type.dtype()) {
    case int32:
      return numbers_of<int32_t>(path, text, fields, int32);
    case float32:
      return numbers_of<float>(path, text, fields, float32);
    case float64:
      return numbers_of<double>(path, text, fields, float64);
    default:
      return numbers_of<int64_t>(path, text, fields, int64);
  }
}

// A table must not change with what it was made of.
Tensor own_copy(const Tensor& tensor, DType dtype) {
  return tensor.detach().to(c10::TensorOptions().dtype(dtype).device(c10::kCPU),
                            /*non_blocking=*/false, /*copy=*/true);
}

uint64_t check_size(const std::string& path, uint64_t lines, std::optional<int64_t> vocab_size) {
  const uint64_t wanted = vocab_size ? static_cast<uint64_t>(*vocab_size) : lines;
  if (lines >= wanted) return wanted;
  throw InvalidArgumentError(
      str(quoted(path), " has ", lines, " lines, but vocab_size is ", wanted));
}

// Nothing: the file is to be read.
std::optional<internal::MappedLines> map_lines(const std::string& path,
                                               const TextFileInitializerOptions& options) {
  if (options.value_index != TextFileIndex::LINE_NUMBER || !options.key_dtype.is_string()) {
    return std::nullopt;
  }
  try {
    static_assert(TextFileIndex::WHOLE_LINE == internal::TokenColumn::kWholeLine);
    auto vocabulary =
        internal::MappedVocabulary::open(path, {.column = {options.key_index, options.delimiter}});
    if (vocabulary == nullptr) return std::nullopt;
    const auto lines = static_cast<uint64_t>(vocabulary->index().size());
    const auto count = static_cast<int64_t>(check_size(path, lines, options.vocab_size));
    return internal::MappedLines{std::move(vocabulary), count, options.value_index_offset};
  } catch (const internal::RepeatedTokenError& error) {
    if (options.vocab_size) return std::nullopt;  // it may be in lines that do not count
    throw InvalidArgumentError(str("a table has one value for a key, but ", quoted(error.token()),
                                   " has one at ", error.first(), " and another at ",
                                   error.second()));
  }
}

void check_index(const char* which, int64_t index, const LeafType& type) {
  if (index < TextFileIndex::WHOLE_LINE) {
    throw InvalidArgumentError(
        str("TextFileInitializer: ", which, "_index is ", index,
            ", which is neither WHOLE_LINE (-2), nor LINE_NUMBER (-1), nor a column from 0"));
  }
  if (index == TextFileIndex::LINE_NUMBER && type != LeafType(int64)) {
    throw InvalidArgumentError(str("TextFileInitializer: ", which, "_index is LINE_NUMBER, but ",
                                   which, "_dtype is ", type.name(), ", not int64"));
  }
}

}  // namespace

KeyValueTensorInitializer::KeyValueTensorInitializer(Leaf keys, Leaf values)
    : keys_(std::move(keys)), values_(std::move(values)) {
  if (keys_.dim() != 1 || values_.dim() != 1 || keys_.sizes() != values_.sizes()) {
    throw InvalidArgumentError(str("a table needs as many keys as values, each of rank 1, but got ",
                                   describe(keys_), " and ", describe(values_)));
  }
  if (keys_.is_tensor()) {
    if (!at::isIntegralType(keys_.tensor().scalar_type(), /*includeBool=*/false)) {
      throw InvalidArgumentError(
          str("a table's keys are strings or integers, but got ", describe(keys_)));
    }
    keys_ = own_copy(keys_.tensor(), int64);
  }
  if (values_.is_tensor()) values_ = own_copy(values_.tensor(), values_.tensor().scalar_type());
}

TableEntries KeyValueTensorInitializer::read() const {
  return {keys_, values_, [](int64_t i) { return str("entry ", i); }};
}

TextFileInitializer::TextFileInitializer(std::string filename, TextFileInitializerOptions options)
    : filename_(std::move(filename)), options_(options) {
  check_index("key", options.key_index, options.key_dtype);
  check_index("value", options.value_index, options.value_dtype);
  if (options.key_dtype != LeafType(cohort::string) && options.key_dtype != LeafType(int64)) {
    throw InvalidArgumentError(str("TextFileInitializer: key_dtype is ", options.key_dtype.name(),
                                   ", not strings or int64"));
  }
  bool known = options.value_dtype.is_string();
  for (const DType dtype : {int64, int32, float32, float64}) {
    known = known || options.value_dtype == LeafType(dtype);
  }
  if (!known) {
    throw InvalidArgumentError(str("TextFileInitializer: value_dtype is ",
                                   options.value_dtype.name(),
                                   ", not int64, int32, float32, float64 or strings"));
  }
  if (options.vocab_size && *options.vocab_size < 1) {
    throw InvalidArgumentError(
        str("TextFileInitializer: vocab_size is ", *options.vocab_size, ", not 1 or more"));
  }
}

TableEntries TextFileInitializer::read() const {
  if (auto lines = map_lines(filename_, options_)) {
    return {StringTensor(), at::empty({0}, at::dtype(int64)), nullptr, std::move(lines)};
  }
  auto text = std::make_shared<TextLines>(internal::read_text_lines(filename_));
  text->lines.resize(check_size(filename_, text->lines.size(), options_.vocab_size));
  const auto leaf = [&](int64_t index, const LeafType& type, int64_t offset) -> Leaf {
    if (index != TextFileIndex::LINE_NUMBER) {
      return parse(filename_, *text, index, type, options_.delimiter);
    }
    return at::arange(offset, offset + static_cast<int64_t>(text->lines.size()), int64);
  };
  Leaf keys = leaf(options_.key_index, options_.key_dtype, 0);
  Leaf values = leaf(options_.value_index, options_.value_dtype, options_.value_index_offset);
  return {std::move(keys), std::move(values), [text, path = filename_](int64_t i) {
            return internal::line_place(path, *text, static_cast<size_t>(i));
          }};
}

}  // namespace lookup
}  // namespace cohort
