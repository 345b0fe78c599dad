// The JSON is never held as a tree: the parser calls a handler that knows what may come next and
// gives up at the first thing that may not, so that depth and memory are bounded by the format.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/train/safetensors/safetensors_dtype.h"
#include "cohort/train/safetensors/safetensors_format.h"

namespace cohort::internal {
namespace {

constexpr size_t kMostDimensions = 254;
// How much of a name errors show: a hostile one has megabytes.
constexpr size_t kMostQuoted = 200;

using Json = nlohmann::json;

class HeaderHandler final : public nlohmann::json_sax<Json> {
 public:
  HeaderHandler(const std::string& file, SafetensorsHeader& header)
      : file_(file), header_(header) {}

  bool start_object(size_t) override {
    if (state_ == State::kStart) return enter(State::kNames);
    if (state_ == State::kTensor) return enter(State::kFields);
    if (state_ == State::kMetadata) return enter(State::kMetadataKeys);
    fail("an object where none may be");
  }

  bool key(std::string& name) override {
    switch (state_) {
      case State::kNames:
        return begin_entry(name);
      case State::kFields:
        return begin_field(name);
      default:
        return begin_metadata(name);
    }
  }

  bool end_object() override {
    if (state_ == State::kFields) {
      if (seen_ != (kDtype | kShape | kOffsets)) fail("lacks its dtype, shape or data_offsets");
      tensor_ = nullptr;
    }
    in_metadata_ = false;
    return enter(state_ == State::kNames ? State::kEnd : State::kNames);
  }

  bool string(std::string& text) override {
    if (state_ == State::kDtype) {
      tensor_->second.type = parse_safetensors_dtype(text, what());
      return enter(State::kFields);
    }
    if (state_ != State::kMetadataValue) fail("a string where none may be");
    metadata_->second = std::move(text);
    return enter(State::kMetadataKeys);
  }

  bool start_array(size_t) override {
    if (state_ == State::kShape) return enter(State::kDimensions);
    if (state_ == State::kOffsets) return enter(State::kBegin);
    fail("a list where none may be");
  }

  bool end_array() override {
    if (state_ != State::kDimensions && state_ != State::kOffsetsEnd) {
      fail("its data_offsets are not two numbers");
    }
    return enter(State::kFields);
  }

  bool number_unsigned(uint64_t number) override {
    switch (state_) {
      case State::kDimensions:
        return add_dimension(number);
      case State::kBegin:
        tensor_->second.begin = number;
        return enter(State::kEndOffset);
      case State::kEndOffset:
        tensor_->second.end = number;
        return enter(State::kOffsetsEnd);
      case State::kOffsetsEnd:
        fail("its data_offsets are not two numbers");
      default:
        fail("a number where none may be");
    }
  }

  bool null() override { fail("a null where none may be"); }
  bool boolean(bool) override { fail("a boolean where none may be"); }
  bool number_integer(int64_t) override { fail("a negative number"); }
  bool number_float(double, const std::string&) override {
    fail("a number that is fractional or too large");
  }
  bool binary(Json::binary_t&) override { fail("binary data"); }
  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    fail(str("is no JSON at byte ", position - std::min<size_t>(position, 1)));
  }

 private:
  // What comes next.
  enum class State {
    kStart,         // the header
    kNames,         // a tensor's name, "__metadata__", or the end
    kTensor,        // a tensor's object
    kFields,        // "dtype", "shape", "data_offsets", or the object's end
    kDtype,         //
    kShape,         // the list,
    kDimensions,    //   its numbers or its end
    kOffsets,       // the list,
    kBegin,         //   its first number,
    kEndOffset,     //   the second,
    kOffsetsEnd,    //   its end
    kMetadata,      // the object,
    kMetadataKeys,  //   a key or the object's end,
    kMetadataValue,
    kEnd,
  };
  enum Field : unsigned { kDtype = 1, kShape = 2, kOffsets = 4 };

  bool enter(State state) {
    state_ = state;
    return true;
  }

  std::string what() const {
    std::string place = str("'", file_, "': header");
    if (tensor_ != nullptr) {
      place += ", tensor " + quoted(std::string_view(tensor_->first).substr(0, kMostQuoted));
    }
    return place + (in_metadata_ ? ", metadata" : "");
  }
  [[noreturn]] void fail(std::string_view problem) const {
    throw DataLossError(str(what(), ": ", problem));
  }

  bool begin_entry(std::string& name) {
    if (name == kSafetensorsMetadataKey) {
      if (had_metadata_) fail("has two metadata");
      had_metadata_ = in_metadata_ = true;
      return enter(State::kMetadata);
    }
    const auto [place, added] = header_.tensors.try_emplace(std::move(name));
    tensor_ = &*place;
    if (!added) fail("is there twice");
    seen_ = 0;
    return enter(State::kTensor);
  }

  bool begin_field(const std::string& name) {
    const auto once = [&](Field field, State next) {
      if ((seen_ & field) != 0) fail(str("has two fields ", quoted(name)));
      seen_ |= field;
      return enter(next);
    };
    if (name == "dtype") return once(kDtype, State::kDtype);
    if (name == "shape") return once(kShape, State::kShape);
    if (name == "data_offsets") return once(kOffsets, State::kOffsets);
    fail(str("has a field ", quoted(std::string_view(name).substr(0, kMostQuoted)),
             ", which the format does not have"));
  }

  bool begin_metadata(std::string& name) {
    const auto [place, added] = header_.metadata.try_emplace(std::move(name));
    metadata_ = &*place;
    if (!added) {
      fail(str("has two values for ",
               quoted(std::string_view(place->first).substr(0, kMostQuoted))));
    }
    return enter(State::kMetadataValue);
  }

  bool add_dimension(uint64_t size) {
    std::vector<int64_t>& shape = tensor_->second.shape;
    if (size > INT64_MAX) fail(str("has a dimension of ", size));
    if (shape.size() == kMostDimensions) fail("has too many dimensions");
    shape.push_back(static_cast<int64_t>(size));
    return true;
  }

  const std::string& file_;
  SafetensorsHeader& header_;
  State state_ = State::kStart;
  // The tensor whose fields are being read; nullptr: none.
  std::pair<const std::string, SafetensorsEntry>* tensor_ = nullptr;
  std::pair<const std::string, std::string>* metadata_ = nullptr;
  bool in_metadata_ = false;
  bool had_metadata_ = false;
  unsigned seen_ = 0;  // of Field
};

// Every place is that of its shape, and all of them together are the data.
void check_places(const SafetensorsHeader& header, uint64_t data_bytes, const std::string& file) {
  uint64_t end = 0;
  for (const auto* tensor : in_file_order(header)) {
    const auto& [name, entry] = *tensor;
    const std::string what =
        str("'", file, "': header, tensor ", quoted(std::string_view(name).substr(0, kMostQuoted)));
    const std::string place = str("data_offsets ", entry.begin, " to ", entry.end);
    if (entry.begin != end) {
      throw DataLossError(str(what, ": its ", place,
                              entry.begin < end ? " overlap" : " leave a gap",
                              "; the tensor before it ends at ", end));
    }
    if (entry.end < entry.begin || entry.end > data_bytes) {
      throw DataLossError(str(what, ": its ", place, " lie outside of the file, which has ",
                              data_bytes, " bytes of data"));
    }
    const uint64_t elements = num_elements(entry.shape, what);
    const uint64_t bytes = entry.end - entry.begin;
    const uint64_t item = size_of(entry.type);
    if (bytes % item != 0 || bytes / item != elements) {
      throw DataLossError(str(what, ": its ", place, " cannot be ", elements, " elements of ",
                              type_name(entry.type)));
    }
    end = entry.end;
  }
  if (end != data_bytes) {
    throw DataLossError(
        str("'", file, "': has ", data_bytes, " bytes of data where its tensors take ", end));
  }
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view json, uint64_t data_bytes,
                                           const std::string& file) {
  // The parser takes leading space and a byte-order mark, and stops at a NUL as if at the end.
  if (!json.starts_with('{')) {
    throw DataLossError(str("'", file,
                            "': its header does not begin with '{'; is it a safetensors "
                            "file?"));
  }
  if (const size_t nul = json.find('\0'); nul != json.npos) {
    throw DataLossError(str("'", file, "': header: is no JSON at byte ", nul));
  }
  SafetensorsHeader header;
  HeaderHandler handler(file, header);
  Json::sax_parse(json.begin(), json.end(), &handler);
  check_places(header, data_bytes, file);
  return header;
}

}  // namespace cohort::internal
