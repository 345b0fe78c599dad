#include "cohort/train/bundle/text_proto.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

constexpr size_t kMostShown = 40;  // bytes of a file in an error's text

bool starts_word(char c) { return is_letter(c) || c == '_'; }
bool is_word(char c) { return starts_word(c) || is_digit(c); }
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

int digit_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 16;
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& file,
         const std::function<void(const TextProtoField&)>& visit)
      : rest_(text), file_(file), visit_(visit) {}

  void read() {
    for (skip_space(); !rest_.empty(); skip_space()) {
      read_field();
      skip_space();
      if (next_is(',') || next_is(';')) take();
    }
  }

 private:
  void read_field() {
    TextProtoField field;
    if (!starts_word(rest_[0])) fail("a field's name was expected");
    field.name = take_while(is_word);
    skip_space();
    if (!next_is(':')) fail("':' was expected after " + quoted(shown(field.name)));
    take();
    skip_space();
    if (!next_is('[')) return read_value(field);
    take();
    skip_space();
    if (next_is(']')) return void(take());
    while (true) {
      read_value(field);
      skip_space();
      if (next_is(']')) return void(take());
      if (!next_is(',')) fail("',' or ']' was expected");
      take();
      skip_space();
    }
  }

  void read_value(TextProtoField& field) {
    field.line = line_;
    if (rest_.empty()) fail("a value is missing");
    const char first = rest_[0];
    field.value.clear();
    if (first == '"' || first == '\'') {
      field.kind = TextProtoField::Kind::kString;
      for (; next_is('"') || next_is('\''); skip_space()) read_string(field.value);
    } else if (starts_word(first)) {
      field.kind = TextProtoField::Kind::kWord;
      field.value = take_while(is_word);
    } else if (is_digit(first) || first == '-' || first == '.') {
      field.kind = TextProtoField::Kind::kNumber;
      field.value =
          take_while([](char c) { return is_word(c) || c == '.' || c == '+' || c == '-'; });
    } else {
      fail("a value was expected");
    }
    visit_(field);
  }

  void read_string(std::string& value) {
    const char quote = take();
    while (true) {
      if (rest_.empty() || next_is('\n')) fail("a string does not end");
      const char c = take();
      if (c == quote) return;
      value += c == '\\' ? read_escape() : c;
    }
  }

  char read_escape() {
    if (rest_.empty()) fail("a string does not end");
    if (rest_[0] >= '0' && rest_[0] <= '7') return read_code({.base = 8, .most_digits = 3});
    const char c = take();
    switch (c) {
      case 'a':
        return '\a';
      case 'b':
        return '\b';
      case 'f':
        return '\f';
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'v':
        return '\v';
      case '\\':
      case '\'':
      case '"':
      case '?':
        return c;
      case 'x':
      case 'X':
        return read_code({.base = 16, .most_digits = 2});
      default:
        fail("there is no escape " + quoted(std::string{'\\', c}));
    }
  }

  struct CodeForm {
    int base;
    int most_digits;
  };
  char read_code(const CodeForm& form) {
    int code = 0;
    int digits = 0;
    for (; digits < form.most_digits && !rest_.empty(); ++digits) {
      const int digit = digit_value(rest_[0]);
      if (digit >= form.base) break;
      code = code * form.base + digit;
      take();
    }
    if (digits == 0 || code > 255) fail("an escape stands for no byte");
    return static_cast<char>(code);
  }

  void skip_space() {
    while (!rest_.empty()) {
      if (rest_[0] == '#') {
        rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
      } else if (is_space(rest_[0])) {
        take();
      } else {
        return;
      }
    }
  }

  template <class Belongs>
  std::string_view take_while(Belongs&& belongs) {
    size_t length = 0;
    while (length < rest_.size() && belongs(rest_[length])) ++length;
    const std::string_view taken = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return taken;
  }

  char take() {
    const char c = rest_[0];
    if (c == '\n') ++line_;
    rest_.remove_prefix(1);
    return c;
  }

  bool next_is(char c) const { return !rest_.empty() && rest_[0] == c; }

  static std::string_view shown(std::string_view text) { return text.substr(0, kMostShown); }

  [[noreturn]] void fail(const std::string& what) const {
    const std::string_view line = shown(rest_.substr(0, rest_.find('\n')));
    throw_malformed(file_, line_,
                    rest_.empty() ? what + ", but the file ends" : what + " at " + quoted(line));
  }

  std::string_view rest_;
  size_t line_ = 1;
  const std::string& file_;
  const std::function<void(const TextProtoField&)>& visit_;
};

}  // namespace

void read_text_proto(std::string_view text, const std::string& file,
                     const std::function<void(const TextProtoField&)>& visit) {
  Reader(text, file, visit).read();
}

void throw_malformed(const std::string& file, size_t line, const std::string& what) {
  throw DataLossError(str(quoted(file), ", line ", line, ": ", what));
}

double number_of(const TextProtoField& field, const std::string& file) {
  std::string_view digits = field.value;
  if (digits.ends_with('f') || digits.ends_with('F')) digits.remove_suffix(1);  // C's float
  double value = 0;
  const char* end = digits.data() + digits.size();
  const auto result = std::from_chars(digits.data(), end, value);
  const bool whole = field.kind == TextProtoField::Kind::kNumber && result.ec == std::errc() &&
                     result.ptr == end && std::isfinite(value);
  if (!whole) {
    throw_malformed(file, field.line,
                    str(field.name, " is ", quoted(field.value.substr(0, kMostShown)),
                        "; it must be a finite number"));
  }
  return value;
}

std::string text_proto_string(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\'' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      result += '\\';
      for (int shift : {6, 3, 0}) result += static_cast<char>('0' + ((byte >> shift) & 7));
    } else {
      result += c;
    }
  }
  return result + '"';
}

}  // namespace cohort::internal
