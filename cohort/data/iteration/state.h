// The position of an iterator: a small tree of named numbers and bytes, which can be part of
// checkpoints.
//
//   std::string bytes = iterator.state().serialize();
//   ...                                                     // in another process, days later
//   iterator.restore(data::IteratorState::parse(bytes));    // the next element is the same
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cohort/core/export.h"

namespace cohort::data {

// A value type; copies share bytes and children, which never change. States may be nested as deeply
// as memory allows: a loop makes long chains of stages (one concatenate a file).
// Thread safety: as std::vector.
class COHORT_API IteratorState {
 public:
  using Bytes = std::shared_ptr<const std::string>;
  using Child = std::shared_ptr<const IteratorState>;

  IteratorState() = default;
  IteratorState(const IteratorState&) = default;
  IteratorState(IteratorState&&) noexcept = default;
  IteratorState& operator=(const IteratorState&) = default;
  IteratorState& operator=(IteratorState&&) noexcept = default;
  ~IteratorState();

  // Each name may be set only once.
  void set_int(std::string name, int64_t value);
  void set_bytes(std::string name, std::string value);
  void set_bytes(std::string name, Bytes value);
  void set_child(std::string name, IteratorState value);
  void set_child(std::string name, Child value);

  bool has(std::string_view name) const;
  // Errors, all of them: DataLoss (there is no such entry, or it is of another kind or outside
  // [min, max]; says which): a state that was not written by the code that reads it.
  int64_t get_int(std::string_view name) const;
  int64_t get_int(std::string_view name, int64_t min, int64_t max) const;
  const std::string& get_bytes(std::string_view name) const;
  const Bytes& shared_bytes(std::string_view name) const;
  const IteratorState& child(std::string_view name) const;
  const Child& shared_child(std::string_view name) const;

  // A compact binary form with a version and a checksum; bytes of one machine are read on any.
  std::string serialize() const;
  // Errors: DataLoss (truncated, damaged, or no state at all; names the byte), Unimplemented (a
  // version that this library does not know).
  static IteratorState parse(std::string_view bytes);

  bool operator==(const IteratorState& other) const;

 private:
  struct Reader;
  using Value = std::variant<int64_t, Bytes, Child>;
  using Entries = std::vector<std::pair<std::string, Value>>;

  const Value& value(std::string_view name) const;
  void write(std::string& out) const;
  static IteratorState read(Reader& reader);

  Entries entries_;
};

}  // namespace cohort::data

namespace cohort::internal {

using data::IteratorState;

}  // namespace cohort::internal
