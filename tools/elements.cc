#include "tools/elements.h"

#include <charconv>
#include <cmath>

#include "cohort/core/error.h"

namespace cohort::tools {
namespace {

constexpr size_t kColumns = 96;

template <class T>
std::string number_text(T number) {
  char text[64];
  std::string result(text, std::to_chars(text, text + sizeof text, number).ptr);
  if constexpr (std::is_floating_point_v<T>) {
    if (result.find_first_not_of("-0123456789") == std::string::npos) result += '.';
  }
  return result;
}

std::string text_of(Float16 number) { return number_text(to_float(number)); }
std::string text_of(Bfloat16 number) { return number_text(to_float(number)); }
std::string text_of(bool value) { return value ? "True" : "False"; }
template <class T>
std::string text_of(T number) {
  return number_text(number);
}
template <class T>
std::string text_of(std::complex<T> number) {
  const std::string imaginary = number_text(number.imag());
  return internal::str('(', number_text(number.real()), imaginary.starts_with('-') ? "" : "+",
                       imaginary, "j)");
}

class ArrayPrinter {
 public:
  ArrayPrinter(const PrintArrayOptions& options,
               const std::function<std::string(uint64_t)>& element, std::ostream& out)
      : shape_(options.shape), left_(options.max_elements), element_(element), out_(out) {}

  void print() { print_from(0); }

 private:
  void print_from(size_t dimension) {
    if (dimension == shape_.size()) {
      --left_;
      return write(element_(next_++), dimension);
    }
    write("[", dimension);
    for (int64_t i = 0; i < shape_[dimension]; ++i) {
      if (i > 0) separate(dimension + 1);
      if (left_ == 0) {
        write("...", dimension + 1);
        break;
      }
      print_from(dimension + 1);
    }
    out_ << ']';
    ++column_;
  }

  // Elements of a row by ", ", rows by new lines.
  void separate(size_t depth) {
    out_ << ',';
    if (depth < shape_.size()) return break_line(depth);
    out_ << ' ';
    column_ += 2;
  }

  void write(const std::string& text, size_t depth) {
    if (column_ > depth && column_ + text.size() > kColumns) break_line(depth);
    out_ << text;
    column_ += text.size();
  }

  void break_line(size_t depth) {
    out_ << '\n' << std::string(depth, ' ');
    column_ = depth;
  }

  const std::vector<int64_t>& shape_;
  uint64_t left_;
  const std::function<std::string(uint64_t)>& element_;
  std::ostream& out_;
  uint64_t next_ = 0;
  size_t column_ = 0;
};

}  // namespace

float to_float(Float16 number) {
  const uint32_t sign = static_cast<uint32_t>(number.bits >> 15) << 31;
  const uint32_t exponent = number.bits >> 10 & 0x1f;
  const uint32_t fraction = number.bits & 0x3ff;
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 0x1f ? 0xff : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

std::string element_text(internal::BundleType type, const char* bytes, uint64_t index) {
  std::string text;
  with_element_type(type, [&]<class T>() { text = text_of(element_at<T>(bytes, index)); });
  return text;
}

void print_array(const PrintArrayOptions& options,
                 const std::function<std::string(uint64_t)>& element, std::ostream& out) {
  for (const int64_t size : options.shape) {
    if (size == 0) {
      out << "[]";
      return;
    }
  }
  if (options.max_elements == 0) {
    out << "...";
    return;
  }
  ArrayPrinter(options, element, out).print();
}

}  // namespace cohort::tools
