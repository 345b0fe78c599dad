// Tokens in memory: their bytes, and tables and lists of their amounts whose bytes are counted.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/ops/lookup/key_index.h"
#include "cohort/transform/analysis/token_stream.h"

namespace cohort::internal {

// The bytes of many texts in few blocks of memory, freed together.
// Thread safety: none.
class TextArena {
 public:
  std::string_view keep(std::string_view text) {
    if (text.empty()) return {};
    if (text.size() > left_.size()) begin_block(text.size());
    std::memcpy(left_.data(), text.data(), text.size());
    const std::string_view kept(left_.data(), text.size());
    left_ = left_.subspan(text.size());
    return kept;
  }
  size_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kFirstBlock = size_t{4} << 10;  // a data set may have many short columns
  static constexpr size_t kLargestBlock = size_t{1} << 20;

  void begin_block(size_t at_least) {
    const size_t size = std::max(at_least, std::clamp(bytes_, kFirstBlock, kLargestBlock));
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(size));
    left_ = {blocks_.back().get(), size};
    bytes_ += size;
  }

  std::vector<std::unique_ptr<char[]>> blocks_;
  std::span<char> left_;  // of the last block
  size_t bytes_ = 0;
};

// The bytes of a vector that doubles, with those that are there twice while it grows.
constexpr size_t grown_bytes(size_t elements, size_t element_bytes) {
  return std::bit_ceil(elements + 1) * element_bytes * 3 / 2;
}

// Amounts of distinct tokens. Thread safety: none.
template <class Amount>
class TokenAmountTable {
 public:
  // The number of each token; -1: it is new.
  void find(std::span<const std::string_view> tokens, int64_t* numbers) const {
    index_.find_all(tokens.data(), static_cast<int64_t>(tokens.size()), numbers);
  }
  // The number of a token that may be new.
  size_t number_of(std::string_view token) {
    const uint64_t hash = hash_key(token);
    const int64_t known = index_.find(token, hash);
    if (known >= 0) return static_cast<size_t>(known);
    amounts_.emplace_back();
    return static_cast<size_t>(index_.insert(arena_.keep(token), hash).first);
  }
  template <class Added>
  void add(size_t number, const Added& added) {
    Amount& amount = amounts_[number];
    const size_t before = amount.heap_bytes();
    amount.add(added);
    amounts_heap_bytes_ += amount.heap_bytes() - before;
  }

  size_t size() const { return amounts_.size(); }
  // An upper bound of what the table takes with one more token, and while it is sorted.
  size_t bytes() const {
    constexpr size_t kSlot = 8;
    constexpr size_t kSortedNumber = 4;
    return arena_.bytes() + amounts_heap_bytes_ + size() * kSortedNumber +
           grown_bytes(size(), sizeof(std::string_view) + sizeof(Amount)) +
           grown_bytes(size() * 4 / 3, kSlot);
  }

  // The entries in the order of tokens; the stream takes them out of the table, or copies them.
  // The table must outlive it, and must not change.
  TokenStreamPtr<Amount> sorted() const { return std::make_unique<Sorted>(*this); }

 private:
  class Sorted final : public TokenStream<Amount> {
   public:
    explicit Sorted(const TokenAmountTable& table) : table_(table), order_(table.size()) {
      for (size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<uint32_t>(i);
      const std::vector<std::string_view>& keys = table.index_.keys();
      std::sort(order_.begin(), order_.end(),
                [&](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
    }
    bool next() override {
      if (next_ == order_.size()) return false;
      const uint32_t number = order_[next_++];
      this->entry_ = {table_.index_.keys()[number], Amount()};
      this->entry_.amount.add(table_.amounts_[number]);
      return true;
    }

   private:
    const TokenAmountTable& table_;
    std::vector<uint32_t> order_;
    size_t next_ = 0;
  };

  KeyIndex<std::string_view> index_;  // its views point into the arena
  TextArena arena_;
  std::vector<Amount> amounts_;
  size_t amounts_heap_bytes_ = 0;
};

}  // namespace cohort::internal
