#include "cohort/ops/lookup/hash_table.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

#include "cohort/core/structure/contiguous_elements.h"
#include "cohort/core/text.h"
#include "cohort/ops/vocabulary/mapped_vocabulary.h"

namespace cohort::internal {
namespace {

std::string describe(const Leaf& leaf) {
  if (leaf.is_tensor()) return internal::describe(leaf.tensor());
  return str("string ", shape_str(leaf.sizes()));
}

std::string show(int64_t key) { return str(key); }
std::string show(std::string_view key) { return quoted(key); }

Tensor on_cpu(const Tensor& tensor, DType dtype) {
  return contiguous_elements(
      tensor.detach().to(c10::TensorOptions().dtype(dtype).device(c10::kCPU)));
}

// In memory of its own: what others hold, they may change.
Tensor own_copy(const Tensor& tensor, DType dtype) {
  return at::empty(tensor.sizes(), dtype).copy_(tensor.detach());
}

// The keys of a leaf, one after another. int64 tensors and strings only.
template <class Key>
const Key* data_of(const Leaf& leaf) {
  if constexpr (std::is_same_v<Key, int64_t>) {
    return leaf.tensor().data_ptr<int64_t>();
  } else {
    return leaf.strings().data();
  }
}

bool same_value(const Leaf& values, int64_t i, int64_t j) {
  if (values.is_strings()) return values.strings()[i] == values.strings()[j];
  const size_t bytes = values.tensor().element_size();
  const char* data = static_cast<const char*>(values.tensor().data_ptr());
  return std::memcmp(data + static_cast<size_t>(i) * bytes, data + static_cast<size_t>(j) * bytes,
                     bytes) == 0;
}

// strings[row], or the only element of `fallback` where row is -1; no byte is copied.
StringTensor gather(const StringTensor& strings, const std::vector<int64_t>& rows,
                    std::vector<int64_t> shape, const StringTensor& fallback) {
  struct Memory {
    StringTensor strings;
    StringTensor fallback;
    std::vector<std::string_view> views;
  };
  auto memory = std::make_shared<Memory>(Memory{strings, fallback, {}});
  memory->views.reserve(rows.size());
  for (const int64_t row : rows) {
    memory->views.push_back(row < 0 ? fallback.item() : strings.data()[row]);
  }
  const std::string_view* views = memory->views.data();
  return StringTensor::over(std::move(memory), views, std::move(shape));
}

// out[i] = values[rows[i]], or the fallback where that is -1.
template <class Word>
void copy_words(const std::vector<int64_t>& rows, const void* values, const void* fallback,
                void* out) {
  for (size_t i = 0; i < rows.size(); ++i) {
    static_cast<Word*>(out)[i] = rows[i] < 0 ? *static_cast<const Word*>(fallback)
                                             : static_cast<const Word*>(values)[rows[i]];
  }
}

Leaf rows_of(const Leaf& leaf, const std::vector<int64_t>& rows) {
  if (leaf.is_tensor()) return leaf.tensor().index_select(0, at::tensor(rows, at::dtype(int64)));
  return gather(leaf.strings(), rows, {static_cast<int64_t>(rows.size())}, StringTensor());
}

}  // namespace

HashTable::HashTable(lookup::TableEntries entries, const Leaf& default_value)
    : keys_(std::move(entries.keys)),
      values_(std::move(entries.values)),
      default_(default_value),
      given_keys_(keys_),
      lines_(std::move(entries.lines)) {
  if (values_.is_tensor()) {
    values_ = own_copy(values_.tensor(), values_.tensor().scalar_type());
    if (static_cast<size_t>(values_.tensor().element_size()) > sizeof(uint64_t)) {
      throw UnimplementedError(str("a table of values of ", describe(values_)));
    }
  }
  check_default();
  if (lines_) return;
  const auto count = static_cast<size_t>(keys_.sizes()[0]);
  if (keys_.is_strings()) {
    fill(index_.emplace<KeyIndex<std::string_view>>(count), entries.place);
  } else {
    keys_ = own_copy(keys_.tensor(), int64);
    fill(index_.emplace<KeyIndex<int64_t>>(count), entries.place);
  }
}

void HashTable::check_default() {
  const auto fail = [&] {
    throw InvalidArgumentError(str("a table with values of ", describe(values_),
                                   " needs one value of that kind as its default, but got ",
                                   describe(default_)));
  };
  if (default_.is_strings() != values_.is_strings()) fail();
  if (default_.is_strings()) {
    if (default_.strings().numel() != 1) fail();
    return;
  }
  const DType dtype = values_.tensor().scalar_type();
  const Tensor& value = default_.tensor();
  if (value.numel() != 1 || !c10::canCast(value.scalar_type(), dtype)) fail();
  default_ = own_copy(value, dtype);
}

template <class Key>
void HashTable::fill(KeyIndex<Key>& index, const Place& place) {
  const Key* keys = data_of<Key>(keys_);
  const int64_t count = keys_.sizes()[0];
  std::vector<int64_t> rows;  // of the keys, once one row is left out
  bool repeated = false;
  for (int64_t row = 0; row < count; ++row) {
    const auto [number, is_new] = index.insert(keys[row]);
    if (is_new) {
      if (repeated) rows.push_back(row);
      continue;
    }
    const int64_t first = repeated ? rows[static_cast<size_t>(number)] : number;
    if (!same_value(values_, first, row)) {
      throw InvalidArgumentError(str("a table has one value for a key, but ", show(keys[row]),
                                     " has one at ", place(first), " and another at ", place(row)));
    }
    if (repeated) continue;
    repeated = true;
    for (int64_t i = 0; i < row; ++i) rows.push_back(i);
  }
  if (!repeated) return;
  values_ = rows_of(values_, rows);
  keys_ = rows_of(keys_, rows);
}

LeafType HashTable::key_type() const {
  if (keys_.is_strings()) return cohort::string;
  return int64;
}

LeafType HashTable::value_type() const {
  if (values_.is_strings()) return cohort::string;
  return values_.tensor().scalar_type();
}

Leaf HashTable::keys() const {
  if (!lines_) return keys_;
  struct Memory {
    std::shared_ptr<const MappedVocabulary> vocabulary;
    std::vector<std::string_view> tokens;
  };
  auto memory = std::make_shared<const Memory>(
      Memory{lines_->vocabulary, lines_->vocabulary->index().tokens()});
  const std::string_view* tokens = memory->tokens.data();
  return StringTensor::over(std::move(memory), tokens, {lines_->count});
}

Leaf HashTable::values() const {
  if (!lines_) return values_;
  return at::arange(lines_->first_number, lines_->first_number + lines_->count, int64);
}

Tensor HashTable::find_lines(const StringTensor& keys) const {
  Tensor out = at::empty(keys.sizes(), int64);
  auto* numbers = out.data_ptr<int64_t>();
  lines_->vocabulary->index().find_all(keys.data(), keys.numel(), numbers);
  const int64_t missing = *default_.tensor().data_ptr<int64_t>();
  for (int64_t i = 0; i < keys.numel(); ++i) {
    const bool is_found = numbers[i] >= 0 && numbers[i] < lines_->count;
    numbers[i] = is_found ? numbers[i] + lines_->first_number : missing;
  }
  return out;
}

Leaf HashTable::lookup(const Leaf& keys) const {
  if (lines_ && keys.is_strings()) return find_lines(keys.strings());
  const std::vector<int64_t> rows = find(keys);
  if (values_.is_tensor()) return gather_numbers(rows, keys.sizes());
  return gather(values_.strings(), rows, keys.sizes(), default_.strings());
}

Tensor HashTable::gather_numbers(const std::vector<int64_t>& rows, at::IntArrayRef shape) const {
  const Tensor& values = values_.tensor();
  Tensor out = at::empty(shape, values.options());
  const auto copy = [&](auto word) {
    copy_words<decltype(word)>(rows, values.data_ptr(), default_.tensor().data_ptr(),
                               out.data_ptr());
  };
  switch (values.element_size()) {
    case 1:
      copy(uint8_t{});
      break;
    case 2:
      copy(uint16_t{});
      break;
    case 4:
      copy(uint32_t{});
      break;
    default:
      copy(uint64_t{});
  }
  return out;
}

std::vector<int64_t> HashTable::find(const Leaf& keys) const {
  const bool integers =
      keys.is_tensor() && at::isIntegralType(keys.tensor().scalar_type(), /*includeBool=*/false);
  if (keys_.is_strings() ? !keys.is_strings() : !integers) {
    throw InvalidArgumentError(str("a table of ", keys_.is_strings() ? "string" : "integer",
                                   " keys was asked for ", describe(keys)));
  }
  if (keys.is_strings()) return find<std::string_view>(keys, keys.strings().numel());
  return find<int64_t>(on_cpu(keys.tensor(), int64), keys.tensor().numel());
}

template <class Key>
std::vector<int64_t> HashTable::find(const Leaf& keys, int64_t count) const {
  const auto& index = std::get<KeyIndex<Key>>(index_);
  std::vector<int64_t> rows(static_cast<size_t>(count));
  index.find_all(data_of<Key>(keys), count, rows.data());
  return rows;
}

}  // namespace cohort::internal
