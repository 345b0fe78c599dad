// The scalar fields of a protobuf message in text form, without protobuf: what small state files
// need, of which anything may be damaged or hostile.
//
//   read_text_proto("name: \"a\" # comment\nsizes: [1, 2]", "file", [](const TextProtoField& f) {
//     ...                           // name "a"; sizes "1"; sizes "2"
//   });
//
// Read is: name: value with an optional ',' or ';' behind it; values are strings in single or
// double quotes with C's escapes (several in a row are one), numbers and words, or lists of them in
// brackets; comments from '#' to the end of the line. Messages within the message are not.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace cohort::internal {

struct TextProtoField {
  enum class Kind { kString, kNumber, kWord };

  std::string name;
  Kind kind = Kind::kWord;
  std::string value;  // of a string: without its quotes and escapes
  size_t line = 0;    // where it begins, from 1
};

// Calls `visit` for each value, those of a list one by one.
// Errors: DataLoss (naming the file and the line).
void read_text_proto(std::string_view text, const std::string& file,
                     const std::function<void(const TextProtoField&)>& visit);
[[noreturn]] void throw_malformed(const std::string& file, size_t line, const std::string& what);

// The finite number that a field is. Errors: DataLoss.
double number_of(const TextProtoField& field, const std::string& file);
// `text` as a string value, in ASCII: what read_text_proto makes `text` of again.
std::string text_proto_string(std::string_view text);

}  // namespace cohort::internal
