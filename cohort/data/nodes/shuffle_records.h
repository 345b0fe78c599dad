// The records of a shuffle's buffer, as columns: a batch of them costs a loop over each column.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cohort/core/structure/structure.h"

namespace cohort::internal {

// What happens to the slots of a buffer: the record of this slot goes out and the last one moves
// there, or (kPushRecord) the next record comes in as the last slot.
using RecordStep = int64_t;
inline constexpr RecordStep kPushRecord = -1;

// Records are structures of scalars, all of one form. Thread safety: none.
class ShuffledRecords {
 public:
  void clear();
  // The steps in order; kPushRecord takes the records of `block` one after another.
  void run(std::span<const RecordStep> steps, const Structure& block);
  // Puts the records of `block` into these slots of `size`.
  void place(std::span<const size_t> slots, size_t size, const Structure& block);
  // The records that went out since the last call, as a block. Records came in before.
  Structure take_out();
  void forget_out();

 private:
  // The bytes of a string: a copy of them, or where they are many, what keeps them alive.
  struct Text {
    std::string copied;
    std::shared_ptr<const StringTensor> kept;
    std::string_view view() const { return kept ? kept->item() : std::string_view(copied); }
  };
  template <class T>
  struct Values {
    using Value = T;
    std::vector<T> slots;
    std::vector<T> out;
  };
  // Numbers by their size alone.
  using Column = std::variant<Values<uint8_t>, Values<uint16_t>, Values<uint32_t>, Values<uint64_t>,
                              Values<Text>>;

  static Column column_of(const Leaf& leaf);
  template <class T>
  static T value_of(const Leaf& leaf, int64_t row);
  static Leaf taken(Values<Text>& column, const Leaf& form);
  template <class T>
  static Leaf taken(Values<T>& column, const Leaf& form);
  // The columns of `block`, made where there are none yet.
  std::vector<Leaf> leaves_of(const Structure& block);

  std::vector<Column> columns_;
  Structure form_;  // a block of no records
};

}  // namespace cohort::internal
