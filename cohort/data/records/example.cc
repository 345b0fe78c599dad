#include "cohort/data/records/example.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "cohort/core/bytes/varint.h"
#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr char kWhat[] = "tf.Example";  // short enough to cost no memory

size_t count_varints(std::string_view packed) {
  return static_cast<size_t>(
      std::count_if(packed.begin(), packed.end(), [](char byte) { return (byte & 0x80) == 0; }));
}

void check_floats(std::string_view packed) {
  if (packed.size() % sizeof(float) != 0) {
    throw DataLossError(str(kWhat, ": packed floats of ", packed.size(), " bytes"));
  }
}

}  // namespace

std::string_view feature_kind_name(FeatureKind kind) {
  switch (kind) {
    case FeatureKind::kBytes:
      return "bytes";
    case FeatureKind::kFloats:
      return "float";
    case FeatureKind::kInts:
      return "int64";
    case FeatureKind::kNone:
      break;
  }
  return "nothing";
}

FeatureView::FeatureView(std::string_view feature) {
  WireReader reader(feature, kWhat);
  const char* begin = feature.data();
  while (true) {
    const char* field = feature.data() + (feature.size() - reader.left().size());
    if (!reader.next()) break;
    if (reader.field() < 1 || reader.field() > 3) continue;
    const auto kind = static_cast<FeatureKind>(reader.field());
    reader.bytes();  // or fail
    if (kind != kind_) begin = field;
    kind_ = kind;
  }
  lists_ = feature.substr(static_cast<size_t>(begin - feature.data()));
}

void FeatureView::for_each_list(FunctionRef<void(std::string_view list)> visit) const {
  WireReader reader(lists_, kWhat);
  while (reader.next()) {
    if (reader.field() == static_cast<uint32_t>(kind_)) visit(reader.bytes());
  }
}

size_t FeatureView::count() const {
  size_t count = 0;
  for_each_list([&](std::string_view list) {
    WireReader reader(list, kWhat);
    while (reader.next()) {
      if (reader.field() != 1) continue;
      if (kind_ == FeatureKind::kBytes || !reader.is_bytes()) {
        ++count;
      } else if (kind_ == FeatureKind::kFloats) {
        count += reader.bytes().size() / sizeof(float);
      } else {
        count += count_varints(reader.bytes());
      }
    }
  });
  return count;
}

void FeatureView::for_each_bytes(FunctionRef<void(std::string_view)> visit) const {
  for_each_list([&](std::string_view list) {
    WireReader reader(list, kWhat);
    while (reader.next()) {
      if (reader.field() == 1) visit(reader.bytes());
    }
  });
}

size_t FeatureView::copy_floats(float* out, size_t most) const {
  size_t count = 0;
  for_each_list([&](std::string_view list) {
    WireReader reader(list, kWhat);
    while (reader.next()) {
      if (reader.field() != 1) continue;
      if (!reader.is_bytes()) {
        if (count < most) out[count] = std::bit_cast<float>(reader.fixed32());
        ++count;
        continue;
      }
      const std::string_view packed = reader.bytes();
      check_floats(packed);
      const size_t values = packed.size() / sizeof(float);
      const size_t room = std::min(values, most - std::min(count, most));
      if (room > 0) std::memcpy(out + count, packed.data(), room * sizeof(float));
      count += values;
    }
  });
  return count;
}

size_t FeatureView::copy_ints(int64_t* out, size_t most) const {
  size_t count = 0;
  const auto add = [&](uint64_t value) {
    if (count < most) out[count] = static_cast<int64_t>(value);
    ++count;
  };
  for_each_list([&](std::string_view list) {
    WireReader reader(list, kWhat);
    while (reader.next()) {
      if (reader.field() != 1) continue;
      if (!reader.is_bytes()) {
        add(reader.varint());
        continue;
      }
      std::string_view packed = reader.bytes();
      while (!packed.empty()) {
        const auto byte = static_cast<unsigned char>(packed.front());
        if (byte < 0x80) {  // nearly all of them
          add(byte);
          packed.remove_prefix(1);
        } else {
          add(take_varint(packed));
        }
      }
    }
  });
  return count;
}

namespace {

// visit(name, value) for each entry of the maps that field `field` of `message` holds.
void for_each_entry(std::string_view message, uint32_t field,
                    FunctionRef<void(std::string_view name, std::string_view value)> visit) {
  WireReader outer(message, kWhat);
  while (outer.next()) {
    if (outer.field() != field) continue;
    WireReader entries(outer.bytes(), kWhat);
    while (entries.next()) {
      if (entries.field() != 1) continue;
      WireReader entry(entries.bytes(), kWhat);
      std::string_view name, value;
      while (entry.next()) {
        if (entry.field() == 1) name = entry.bytes();
        if (entry.field() == 2) value = entry.bytes();
      }
      visit(name, value);
    }
  }
}

}  // namespace

void for_each_feature(std::string_view example,
                      FunctionRef<void(std::string_view name, const FeatureView&)> visit) {
  for_each_entry(example, 1, [&](std::string_view name, std::string_view value) {
    visit(name, FeatureView(value));
  });
}

void for_each_feature_list(std::string_view sequence_example,
                           FunctionRef<void(std::string_view name, std::string_view list)> visit) {
  for_each_entry(sequence_example, 2, visit);
}

void for_each_step(std::string_view list, FunctionRef<void(const FeatureView&)> visit) {
  WireReader steps(list, kWhat);
  while (steps.next()) {
    if (steps.field() == 1) visit(FeatureView(steps.bytes()));
  }
}

}  // namespace cohort::internal
