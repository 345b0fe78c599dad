// The fields of a message, stated once: the list of them both writes and reads it.
//
//   struct Claim {
//     int64_t generation = 0;
//     std::string group;
//     std::vector<Origin> origins;  // a message, too
//   };
//   void fields(auto& f, Claim& claim) {
//     f(1, claim.generation);
//     f(2, claim.group);
//     f(3, claim.origins);
//   }
//   const std::string bytes = encode_fields(claim);
//   const auto claim = decode_fields<Claim>(bytes, "a claim");
//
// The bytes are those of protocol buffers (wire.h). A value may be
//   - a number: integers, bool and durations (their count) are varints, of negative ones the two's
//     complement; float and double have 4 and 8 bytes,
//   - an enum, whose last enumerator stands behind it: f(4, member.state, TaskState::kLeft),
//   - a std::string; a std::string_view, which lies in the bytes that are read,
//   - a struct with a list of its own; a std::pair, of 1 and 2,
//   - a std::optional of these, written if it has a value,
//   - a vector, set or map of these (to write: any range), in which numbers are packed.
// A list stands in the namespace of its message, or in this one. Messages that contain themselves
// have none.
//
// What is 0 or empty is not written, and what is missing is 0 or empty. Unknown fields are passed
// over. Of a field that comes twice the last one counts.
//
// Behind a value may also stand kAlways, kFixed and checks, which are functions that throw. A check
// that takes the value is called with it, with a text before it is copied; one that takes a
// container, before an element is added. One that takes a text also sees the elements of a
// container and the keys of a map.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "cohort/core/bytes/varint.h"
#include "cohort/core/bytes/wire.h"

namespace cohort::internal {

struct AlwaysField {};
struct FixedField {};
// It is written also if it is 0 or empty. Where it is missing, the value stays as it was.
inline constexpr AlwaysField kAlways;
// A number takes 4 or 8 bytes, as it is wide.
inline constexpr FixedField kFixed;

template <class T>
std::string encode_fields(const T& message);

// Errors: DataLoss (those of WireReader; a number that does not fit; more elements than the bytes
// account for); those of the checks. Memory: elements of containers may take `most_per_byte` times
// the message's bytes, and some MiB.
template <class T>
void decode_fields(std::string_view bytes, std::string_view what, T& message,
                   size_t most_per_byte = 4);

template <class T>
T decode_fields(std::string_view bytes, std::string_view what, size_t most_per_byte = 4) {
  T message{};
  decode_fields(bytes, what, message, most_per_byte);
  return message;
}

// How a list is applied.

template <class T>
concept OptionalField = requires(T value) {
  value.has_value();
  value.emplace();
};
template <class T>
concept TextField = std::same_as<T, std::string> || std::same_as<T, std::string_view>;
template <class T>
concept NumberField = std::is_arithmetic_v<T> || std::is_enum_v<T> || requires {
  typename T::rep;
  typename T::period;
};
template <class T>
concept RepeatedField = std::ranges::range<T> && !TextField<T>;
template <class T>
concept MapField = RepeatedField<T> && requires {
  typename T::mapped_type;
};

// An element that can be assigned: of a map without the const of its key.
template <class C>
struct FieldElement {
  using Type = std::remove_cv_t<std::ranges::range_value_t<C>>;
};
template <MapField C>
struct FieldElement<C> {
  using Type = std::pair<typename C::key_type, typename C::mapped_type>;
};

template <class Wanted, class... How>
inline constexpr bool kIsAmong = (std::same_as<Wanted, How> || ...);

template <class V, class... How>
inline constexpr bool kIsFixedField = std::is_floating_point_v<V> || kIsAmong<FixedField, How...>;

template <NumberField V>
constexpr uint64_t field_bits(V value) {
  if constexpr (std::same_as<V, double>) {
    return std::bit_cast<uint64_t>(value);
  } else if constexpr (std::same_as<V, float>) {
    return std::bit_cast<uint32_t>(value);
  } else if constexpr (std::is_arithmetic_v<V> || std::is_enum_v<V>) {
    return static_cast<uint64_t>(value);
  } else {
    return field_bits(value.count());
  }
}

// Nothing: the number does not fit.
template <NumberField V>
constexpr std::optional<V> number_field(uint64_t bits) {
  if constexpr (std::same_as<V, double>) {
    return std::bit_cast<double>(bits);
  } else if constexpr (std::same_as<V, float>) {
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
  } else if constexpr (std::same_as<V, bool>) {
    return bits != 0;
  } else if constexpr (std::is_integral_v<V> || std::is_enum_v<V>) {
    const auto value = static_cast<V>(bits);
    return static_cast<uint64_t>(value) == bits ? std::optional(value) : std::nullopt;
  } else {
    const auto count = number_field<typename V::rep>(bits);
    return count ? std::optional(V(*count)) : std::nullopt;
  }
}

// A WireWriter that only counts.
class WireSize {
 public:
  void varint(uint32_t field, uint64_t value) { bytes_ += tag(field) + varint_bytes(value); }
  void fixed32(uint32_t field, uint32_t) { bytes_ += tag(field) + 4; }
  void fixed64(uint32_t field, uint64_t) { bytes_ += tag(field) + 8; }
  void bytes(uint32_t field, std::string_view value) { message(field, value.size()); }
  void message(uint32_t field, size_t size) { bytes_ += tag(field) + varint_bytes(size) + size; }
  size_t size() const { return bytes_; }

 private:
  static constexpr size_t tag(uint32_t field) { return varint_bytes(uint64_t{field} << 3); }

  size_t bytes_ = 0;
};

template <class T>
size_t fields_size(const T& message);

template <class Out>
class FieldsWriter {
 public:
  explicit FieldsWriter(Out& out) : out_(out) {}

  template <class V, class... How>
  void operator()(uint32_t field, const V& value, const How&...) {
    if constexpr (OptionalField<V>) {
      if (value) one<How...>(field, *value);
    } else if constexpr (RepeatedField<V>) {
      if constexpr (NumberField<typename FieldElement<V>::Type>) {
        pack<How...>(field, value);
      } else {
        for (const auto& element : value) one<How...>(field, element);
      }
    } else if (kIsAmong<AlwaysField, How...> || !is_zero(value)) {
      one<How...>(field, value);
    }
  }

 private:
  template <class V>
  static bool is_zero(const V& value) {
    if constexpr (NumberField<V>) {
      return field_bits(value) == 0;
    } else if constexpr (TextField<V>) {
      return value.empty();
    } else {
      return fields_size(value) == 0;
    }
  }

  template <class... How, class V>
  void one(uint32_t field, const V& value) {
    if constexpr (TextField<V>) {
      out_.bytes(field, value);
    } else if constexpr (!NumberField<V>) {
      out_.message(field, fields_size(value));
      if constexpr (!std::same_as<Out, WireSize>) fields(*this, const_cast<V&>(value));
    } else if constexpr (!kIsFixedField<V, How...>) {
      out_.varint(field, field_bits(value));
    } else if constexpr (sizeof(V) == 4) {
      out_.fixed32(field, static_cast<uint32_t>(field_bits(value)));
    } else {
      out_.fixed64(field, field_bits(value));
    }
  }

  template <class... How, class C>
  void pack(uint32_t field, const C& numbers) {
    using V = typename FieldElement<C>::Type;
    size_t size = 0;
    for (const V number : numbers) {
      size += kIsFixedField<V, How...> ? sizeof(V) : varint_bytes(field_bits(number));
    }
    if (size == 0) return;
    if constexpr (kIsFixedField<V, How...> && std::ranges::contiguous_range<C> &&
                  std::endian::native == std::endian::little) {
      out_.bytes(field, {reinterpret_cast<const char*>(std::ranges::data(numbers)), size});
      return;
    }
    out_.message(field, size);
    if constexpr (!std::same_as<Out, WireSize>) {
      for (const V number : numbers)
        out_.packed(field_bits(number), kIsFixedField<V, How...> ? sizeof(V) : 0);
    }
  }

  Out& out_;
};

template <class T>
size_t fields_size(const T& message) {
  WireSize size;
  FieldsWriter<WireSize> write(size);
  fields(write, const_cast<T&>(message));  // which only reads it
  return size.size();
}

struct FieldsClear {
  template <class V, class... How>
  void operator()(uint32_t, V& value, const How&...) {
    if constexpr (kIsAmong<AlwaysField, How...>) {
      return;
    } else if constexpr (NumberField<V> || TextField<V> || RepeatedField<V> || OptionalField<V>) {
      value = V{};
    } else {
      fields(*this, value);
    }
  }
};

// Reads the field at which the reader is.
class FieldsReader {
 public:
  // `left`: how many bytes the elements of containers may still take.
  FieldsReader(WireReader& in, size_t& left) : in_(in), left_(left) {}

  template <class T>
  static void read(WireReader& in, size_t& left, T& message) {
    FieldsClear clear;
    fields(clear, message);
    FieldsReader reader(in, left);
    while (in.next()) fields(reader, message);
  }

  template <class V, class... How>
  void operator()(uint32_t field, V& value, const How&... how) {
    if (in_.field() == field) one(value, how...);
  }

 private:
  template <class V, class... How>
  void one(V& value, const How&... how) {
    if constexpr (OptionalField<V>) {
      one(value.emplace(), how...);
    } else if constexpr (RepeatedField<V>) {
      add_to(value, how...);
    } else if constexpr (NumberField<V>) {
      value = number<V, How...>(scalar<V, How...>(), how...);
    } else if constexpr (TextField<V>) {
      const std::string_view bytes = in_.bytes();
      (check(how, bytes), ...);
      value = bytes;
    } else {
      WireReader in(in_.bytes(), in_.what());
      read(in, left_, value);
    }
  }

  template <class C, class... How>
  void add_to(C& container, const How&... how) {
    using V = typename FieldElement<C>::Type;
    if constexpr (NumberField<V>) {
      if (in_.is_bytes()) {
        for (std::string_view packed = in_.bytes(); !packed.empty();) {
          const uint64_t bits = in_.take_packed(packed, kIsFixedField<V, How...> ? sizeof(V) : 0);
          add(container, number<V, How...>(bits, how...), how...);
        }
        return;
      }
    }
    V element{};
    one(element, how...);
    if constexpr (MapField<C>) {
      (check(how, element.first), ...);
    }
    add(container, std::move(element), how...);
  }

  template <class C, class V, class... How>
  void add(C& container, V element, const How&... how) {
    if (sizeof(V) > left_) in_.fail("has more parts than its size allows");
    left_ -= sizeof(V);
    (check(how, std::as_const(container)), ...);
    container.insert(container.end(), std::move(element));
  }

  template <class V, class... How>
  uint64_t scalar() {
    if constexpr (!kIsFixedField<V, How...>) {
      return in_.varint();
    } else if constexpr (sizeof(V) == 4) {
      return in_.fixed32();
    } else {
      return in_.fixed64();
    }
  }

  template <class V, class... How>
  V number(uint64_t bits, const How&... how) {
    static_assert(!std::is_enum_v<V> || kIsAmong<V, How...>, "names no last enumerator");
    std::optional<V> value = number_field<V>(bits);
    if constexpr (std::is_enum_v<V>) {
      if ((is_beyond<V>(bits, how) || ...)) value.reset();
    }
    if (!value) in_.fail_range();
    (check(how, *value), ...);
    return *value;
  }

  template <class V, class Last>
  static bool is_beyond([[maybe_unused]] uint64_t bits, [[maybe_unused]] const Last& last) {
    if constexpr (std::same_as<Last, V>) return bits > field_bits(last);
    return false;
  }

  template <class Check, class V>
  static void check(const Check& check, const V& value) {
    if constexpr (std::invocable<const Check&, const V&>) check(value);
  }

  WireReader& in_;
  size_t& left_;
};

template <class First, class Second>
void fields(auto& f, std::pair<First, Second>& pair) {
  f(1, const_cast<std::remove_const_t<First>&>(pair.first), kAlways);
  f(2, pair.second, kAlways);
}

template <class T>
std::string encode_fields(const T& message) {
  WireWriter out;
  out.reserve(fields_size(message));
  FieldsWriter<WireWriter> write(out);
  fields(write, const_cast<T&>(message));  // which only reads it
  return std::move(out).str();
}

template <class T>
void decode_fields(std::string_view bytes, std::string_view what, T& message,
                   size_t most_per_byte) {
  constexpr size_t kFreeBytes = size_t{12} << 20;
  size_t left = kFreeBytes + most_per_byte * bytes.size();
  WireReader in(bytes, what);
  FieldsReader::read(in, left, message);
}

}  // namespace cohort::internal
