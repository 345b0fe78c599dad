// The wire format of protocol buffers, read and written field by field: what fields.h is made of.
// It is also for messages whose fields are no list.
//
// Anybody may have written the messages: nothing is copied and no memory is taken that the bytes do
// not account for, which generated classes do not promise (two bytes of an empty sub-message become
// a hundred).
//
//   WireWriter message;
//   message.varint(1, 3).bytes(2, "name");
//   WireReader reader(message.str(), "file.index: entry 'w'");
//   while (reader.next()) {
//     switch (reader.field()) {
//       case 1: count = reader.varint(); break;
//       case 2: name = reader.bytes(); break;
//     }                                                        // other fields are passed over
//   }
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace cohort::internal {

// Errors of all calls: DataLoss (cut short, a malformed number, a field of another type than asked
// for, a group); the text begins with `what`. Thread safety: none.
class WireReader {
 public:
  // Both must outlive the reader; the views that it gives lie in `bytes`.
  WireReader(std::string_view bytes, std::string_view what) : left_(bytes), what_(what) {}
  template <std::same_as<std::string> Temporary>
  WireReader(std::string_view bytes, Temporary&& what) = delete;

  // Goes on to the next field; false at the end.
  bool next();
  uint32_t field() const { return field_; }
  // Whether bytes() may be called: packed fields may also come as single numbers.
  bool is_bytes() const { return type_ == Type::kBytes; }
  // The bytes after the field.
  std::string_view left() const { return left_; }
  std::string_view what() const { return what_; }

  // The value of the field, once. int32 and int64 fields are varints too.
  uint64_t varint();
  uint32_t fixed32();
  uint64_t fixed64();  // a double is its bits
  // Strings, sub-messages, packed fields.
  std::string_view bytes();
  // Takes a number off the front of a packed field: one of `width` bytes; 0: a varint.
  uint64_t take_packed(std::string_view& packed, size_t width) const;

  [[noreturn]] void fail(std::string_view problem) const;
  // The number of the field does not fit.
  [[noreturn]] void fail_range() const;

 private:
  enum class Type : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  void expect(Type type) const;
  uint64_t take_number(std::string_view& from) const;
  std::string_view take(std::string_view& from, uint64_t length) const;

  std::string_view left_;
  std::string_view what_;
  uint32_t field_ = 0;
  Type type_ = Type::kVarint;
  uint64_t number_ = 0;  // of a varint or a fixed number
  std::string_view bytes_;
};

// Fields are to be written in ascending order, as everybody does.
class WireWriter {
 public:
  WireWriter& varint(uint32_t field, uint64_t value);
  WireWriter& fixed32(uint32_t field, uint32_t value);
  WireWriter& fixed64(uint32_t field, uint64_t value);
  WireWriter& bytes(uint32_t field, std::string_view value);
  // A field of `size` bytes, which are to follow: its own fields, or packed numbers.
  void message(uint32_t field, size_t size);
  // A number of `width` bytes; 0: a varint.
  void packed(uint64_t value, size_t width);

  void reserve(size_t bytes) { out_.reserve(bytes); }
  const std::string& str() const& { return out_; }
  std::string str() && { return std::move(out_); }

 private:
  void tag(uint32_t field, unsigned type);

  std::string out_;
};

}  // namespace cohort::internal
