// The wire format of protocol buffers, read and written field by field.
//
// For small messages from files that anybody may have written: nothing is copied and no memory is
// taken that the bytes do not account for, which generated classes do not promise (two bytes of an
// empty sub-message become a hundred).
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

#include <cstdint>
#include <string>
#include <string_view>

namespace cohort::internal {

// Errors of all calls: DataLoss (cut short, a malformed number, a field of another type than asked
// for, a group); the text begins with `what`. Thread safety: none.
class WireReader {
 public:
  // `bytes` must outlive the reader, and so must the views that it gives.
  WireReader(std::string_view bytes, std::string what) : left_(bytes), what_(std::move(what)) {}

  // Goes on to the next field; false at the end.
  bool next();
  uint32_t field() const { return field_; }
  // Whether bytes() may be called: packed fields may also come as single numbers.
  bool is_bytes() const { return type_ == Type::kBytes; }
  // What comes after the field.
  std::string_view left() const { return left_; }

  // The value of the field, once. int32 and int64 fields are varints too.
  uint64_t varint();
  uint32_t fixed32();
  uint64_t fixed64();  // a double is its bits
  // Strings, sub-messages, packed fields.
  std::string_view bytes();

  [[noreturn]] void fail(std::string_view problem) const;

 private:
  enum class Type : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  void expect(Type type) const;

  std::string_view left_;
  std::string what_;
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

  const std::string& str() const { return out_; }

 private:
  void tag(uint32_t field, unsigned type);

  std::string out_;
};

}  // namespace cohort::internal
