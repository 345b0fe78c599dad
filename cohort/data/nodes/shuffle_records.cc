#include "cohort/data/nodes/shuffle_records.h"

#include <ATen/ops/empty.h>

#include <cstring>
#include <type_traits>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/structure/spec.h"

namespace cohort::internal {
namespace {

// Strings from this size on are kept where they are. A file's records lie in blocks of 128 KiB, of
// which one then keeps at most 8 times its own bytes in memory.
constexpr size_t kKeptBytes = size_t{16} << 10;

}  // namespace

void ShuffledRecords::clear() {
  columns_.clear();
  form_ = Structure();
}

ShuffledRecords::Column ShuffledRecords::column_of(const Leaf& leaf) {
  if (leaf.is_strings()) return Values<Text>();
  switch (leaf.tensor().dtype().itemsize()) {
    case 1:
      return Values<uint8_t>();
    case 2:
      return Values<uint16_t>();
    case 4:
      return Values<uint32_t>();
    case 8:
      return Values<uint64_t>();
    default:
      throw InternalError(str("a record of ", TensorSpec::of(leaf), " cannot be shuffled"));
  }
}

std::vector<Leaf> ShuffledRecords::leaves_of(const Structure& block) {
  std::vector<Leaf> leaves;
  block.for_each([&](const Leaf& leaf) {
    if (leaf.dim() != 1) throw InternalError("only records of scalars can be shuffled as columns");
    leaves.push_back(leaf.is_strings() ? leaf : Leaf(leaf.tensor().contiguous()));
  });
  if (columns_.empty()) {
    for (const Leaf& leaf : leaves) columns_.push_back(column_of(leaf));
    form_ = block.map([](const Leaf& leaf) -> Leaf {
      if (leaf.is_strings()) return StringTensor();
      return at::empty({0}, leaf.tensor().options());
    });
  }
  return leaves;
}

template <class T>
T ShuffledRecords::value_of(const Leaf& leaf, int64_t row) {
  if constexpr (std::is_same_v<T, Text>) {
    const std::string_view bytes = leaf.strings().data()[row];
    if (bytes.size() < kKeptBytes) return {std::string(bytes), nullptr};
    return {{}, std::make_shared<const StringTensor>(leaf.strings().select(0, row))};
  } else {
    T value;
    std::memcpy(&value, static_cast<const T*>(leaf.tensor().data_ptr()) + row, sizeof value);
    return value;
  }
}

void ShuffledRecords::run(std::span<const RecordStep> steps, const Structure& block) {
  const std::vector<Leaf> leaves = leaves_of(block);
  for (size_t i = 0; i < columns_.size(); ++i) {
    std::visit(
        [&](auto& column) {
          using Value = typename std::decay_t<decltype(column)>::Value;
          int64_t row = 0;
          for (const RecordStep step : steps) {
            if (step == kPushRecord) {
              column.slots.push_back(value_of<Value>(leaves[i], row++));
            } else {
              const auto slot = static_cast<size_t>(step);
              column.out.push_back(std::move(column.slots[slot]));
              if (slot + 1 < column.slots.size())
                column.slots[slot] = std::move(column.slots.back());
              column.slots.pop_back();
            }
          }
        },
        columns_[i]);
  }
}

void ShuffledRecords::place(std::span<const size_t> slots, size_t size, const Structure& block) {
  const std::vector<Leaf> leaves = leaves_of(block);
  for (size_t i = 0; i < columns_.size(); ++i) {
    std::visit(
        [&](auto& column) {
          using Value = typename std::decay_t<decltype(column)>::Value;
          column.slots.resize(size);
          int64_t row = 0;
          for (const size_t slot : slots) column.slots[slot] = value_of<Value>(leaves[i], row++);
        },
        columns_[i]);
  }
}

Leaf ShuffledRecords::taken(Values<Text>& column, const Leaf&) {
  struct Memory {
    std::vector<Text> texts;
    std::vector<std::string_view> views;
  };
  const auto memory = std::make_shared<Memory>();
  memory->texts = std::exchange(column.out, {});
  memory->views.reserve(memory->texts.size());
  for (const Text& text : memory->texts) memory->views.push_back(text.view());
  return StringTensor::over(memory, memory->views.data(), {std::ssize(memory->views)});
}

template <class T>
Leaf ShuffledRecords::taken(Values<T>& column, const Leaf& form) {
  const Tensor values = at::empty({std::ssize(column.out)}, form.tensor().options());
  std::memcpy(values.data_ptr(), column.out.data(), column.out.size() * sizeof(T));
  column.out.clear();
  return values;
}

Structure ShuffledRecords::take_out() {
  const std::vector<Leaf> forms = form_.flatten();
  std::vector<Leaf> leaves;
  for (size_t i = 0; i < columns_.size(); ++i) {
    leaves.push_back(
        std::visit([&](auto& column) { return taken(column, forms[i]); }, columns_[i]));
  }
  return form_.pack(leaves);
}

void ShuffledRecords::forget_out() {
  for (Column& column : columns_) std::visit([](auto& values) { values.out.clear(); }, column);
}

}  // namespace cohort::internal
