// Fields of messages: what all of them read and write in one way.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cohort/cluster/membership/limits.h"
#include "cohort/cluster/membership/view.h"
#include "cohort/core/bytes/wire.h"
#include "cohort/core/error.h"

namespace cohort::internal::membership {

inline constexpr size_t kMostErrorBytes = 8 << 10;

uint64_t to_wire(Duration duration);
// At most a year.
Duration duration_from(uint64_t value);

// Errors: InvalidArgument (`container` has `most` elements already).
template <class Container>
void limit(std::string_view what, const Container& container, size_t most) {
  if (container.size() < most) return;
  throw InvalidArgumentError(str("a message has more than ", most, ' ', what));
}

// Errors: InvalidArgument (too long, not UTF-8).
std::string text_of(std::string_view what, std::string_view bytes, size_t most);
// Errors: ResourceExhausted (too long).
std::string bytes_of(std::string_view what, std::string_view bytes, size_t most);

// Fields that have their default are not written.
class Fields {
 public:
  Fields& number(uint32_t field, uint64_t value) {
    if (value != 0) out_.varint(field, value);
    return *this;
  }
  Fields& number(uint32_t field, int64_t value) {
    return number(field, static_cast<uint64_t>(value));
  }
  Fields& number(uint32_t field, int value) { return number(field, static_cast<int64_t>(value)); }
  Fields& number(uint32_t field, bool value) { return number(field, value ? 1 : 0); }
  Fields& number(uint32_t field, Duration value) { return number(field, to_wire(value)); }
  Fields& bytes(uint32_t field, std::string_view value) {
    if (!value.empty()) out_.bytes(field, value);
    return *this;
  }
  // Also an empty one.
  Fields& item(uint32_t field, std::string_view value) {
    out_.bytes(field, value);
    return *this;
  }
  const std::string& str() const { return out_.str(); }

 private:
  WireWriter out_;
};

std::string encode_task(const TaskId& task);
TaskId decode_task(std::string_view bytes);
std::string encode_figure(const std::string& name, double value);
void decode_figure(std::string_view bytes, Figures& figures);

// Calls take(in) for each field.
template <class Take>
void read(std::string_view bytes, std::string_view what, Take&& take) {
  WireReader in(bytes, std::string(what));
  while (in.next()) take(in);
}

}  // namespace cohort::internal::membership
