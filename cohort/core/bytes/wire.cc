#include "cohort/core/bytes/wire.h"

#include "cohort/core/bytes/varint.h"
#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

}  // namespace

void WireReader::fail(std::string_view problem) const {
  throw DataLossError(cohort::internal::str(what_, ": ", problem));
}

void WireReader::fail_range() const {
  fail(cohort::internal::str("field ", field_, " is out of range"));
}

uint64_t WireReader::take_number(std::string_view& from) const {
  try {
    return take_varint(from);
  } catch (const DataLossError& error) {
    fail(error.what());
  }
}

std::string_view WireReader::take(std::string_view& from, uint64_t length) const {
  if (length > from.size()) {
    fail(cohort::internal::str("field ", field_, " needs ", length, " bytes, of which ",
                               from.size(), " are there"));
  }
  const std::string_view taken = from.substr(0, length);
  from.remove_prefix(length);
  return taken;
}

bool WireReader::next() {
  if (left_.empty()) return false;
  const uint64_t tag = take_number(left_);
  if (tag >> 3 == 0 || tag >> 32 != 0) fail("a field number out of range");
  field_ = static_cast<uint32_t>(tag >> 3);
  type_ = static_cast<Type>(tag & 7);
  switch (type_) {
    case Type::kVarint:
      number_ = take_number(left_);
      return true;
    case Type::kFixed64:
      number_ = little_endian(take(left_, 8));
      return true;
    case Type::kBytes:
      bytes_ = take(left_, take_number(left_));
      return true;
    case Type::kFixed32:
      number_ = little_endian(take(left_, 4));
      return true;
  }
  fail(cohort::internal::str("field ", field_, " is of the unknown wire type ", tag & 7));
}

void WireReader::expect(Type type) const {
  if (type_ == type) return;
  fail(cohort::internal::str("field ", field_, " is of wire type ", static_cast<int>(type_),
                             " where ", static_cast<int>(type), " is expected"));
}

uint64_t WireReader::varint() {
  expect(Type::kVarint);
  return number_;
}

uint32_t WireReader::fixed32() {
  expect(Type::kFixed32);
  return static_cast<uint32_t>(number_);
}

uint64_t WireReader::fixed64() {
  expect(Type::kFixed64);
  return number_;
}

std::string_view WireReader::bytes() {
  expect(Type::kBytes);
  return bytes_;
}

uint64_t WireReader::take_packed(std::string_view& packed, size_t width) const {
  return width == 0 ? take_number(packed) : little_endian(take(packed, width));
}

void WireWriter::tag(uint32_t field, unsigned type) {
  append_varint(out_, static_cast<uint64_t>(field) << 3 | type);
}

WireWriter& WireWriter::varint(uint32_t field, uint64_t value) {
  tag(field, 0);
  append_varint(out_, value);
  return *this;
}

WireWriter& WireWriter::fixed32(uint32_t field, uint32_t value) {
  tag(field, 5);
  packed(value, 4);
  return *this;
}

WireWriter& WireWriter::fixed64(uint32_t field, uint64_t value) {
  tag(field, 1);
  packed(value, 8);
  return *this;
}

WireWriter& WireWriter::bytes(uint32_t field, std::string_view value) {
  message(field, value.size());
  out_ += value;
  return *this;
}

void WireWriter::message(uint32_t field, size_t size) {
  tag(field, 2);
  append_varint(out_, size);
}

void WireWriter::packed(uint64_t value, size_t width) {
  if (width == 0) return append_varint(out_, value);
  for (size_t i = 0; i < width; ++i, value >>= 8) out_ += static_cast<char>(value & 0xff);
}

}  // namespace cohort::internal
