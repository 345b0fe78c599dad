#include "cohort/parameter_server/store/packed_message.h"

#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "cohort/core/bytes/fields.h"
#include "cohort/core/bytes/wire.h"
#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

constexpr char kWhat[] = "a packed message of a store";
// Above all fields of the messages that are packed, and the first of a packed one.
constexpr uint32_t kPackedField = 101;
struct Mark {
  bool is_packed = true;
};
void fields(auto& f, Mark& mark) { f(kPackedField, mark.is_packed); }

constexpr size_t kMostPlainTensors = 1024;
constexpr size_t kMostPlainFields = size_t{256} << 10;
// Two neighbouring pieces have more than this, so that 2 GiB are at most 2,049 pieces.
constexpr size_t kPieceBytes = size_t{2} << 20;
// A receiver takes memory for each.
constexpr size_t kMostTensors = size_t{1} << 20;

// What stands in front of the bulk.
struct Directory {
  std::string_view control;
  std::vector<uint64_t> sizes = {};  // of the tensors
};
void fields(auto& f, Directory& directory) {
  f(1, directory.control);
  f(2, directory.sizes);
}

rpc::Bytes owned(std::string text) {
  auto owner = std::make_shared<const std::string>(std::move(text));
  return {owner, owner->data(), owner->size()};
}

// Bulks [begin, end) as one; a single one with bytes stays where it is.
rpc::Bytes joined(const std::vector<rpc::Bytes>& bulk, size_t begin, size_t end, size_t bytes) {
  for (size_t i = begin; i < end; ++i) {
    if (bulk[i].size == bytes) return bulk[i];
  }
  std::string piece;
  piece.reserve(bytes);
  for (size_t i = begin; i < end; ++i) piece.append(bulk[i].data, bulk[i].size);
  return owned(std::move(piece));
}

std::vector<rpc::Bytes> pieces_of(const std::vector<rpc::Bytes>& bulk) {
  std::vector<rpc::Bytes> pieces;
  size_t begin = 0, bytes = 0;
  for (size_t i = 0; i < bulk.size(); ++i) {
    if (bytes > 0 && bytes + bulk[i].size > kPieceBytes) {
      pieces.push_back(joined(bulk, begin, i, bytes));
      begin = i;
      bytes = 0;
    }
    bytes += bulk[i].size;
  }
  if (bytes > 0) pieces.push_back(joined(bulk, begin, bulk.size(), bytes));
  return pieces;
}

// Cuts pieces into tensors again.
class Cutter {
 public:
  explicit Cutter(const std::vector<rpc::Bytes>& bulk) : bulk_(bulk) {}

  rpc::Bytes next(uint64_t size, const WireReader& in) {
    if (size == 0) return {};
    if (piece_ < bulk_.size() && taken_ == bulk_[piece_].size) {
      ++piece_;
      taken_ = 0;
    }
    if (piece_ >= bulk_.size() || size > bulk_[piece_].size - taken_) {
      in.fail("its tensors do not fit into its bytes");
    }
    const rpc::Bytes& piece = bulk_[piece_];
    const rpc::Bytes part{piece.owner, piece.data + taken_, size};
    taken_ += size;
    return part;
  }
  bool is_at_end() const {
    return piece_ + 1 >= bulk_.size() && (piece_ >= bulk_.size() || taken_ == bulk_[piece_].size);
  }

 private:
  const std::vector<rpc::Bytes>& bulk_;
  size_t piece_ = 1;  // the directory is the first
  size_t taken_ = 0;
};

}  // namespace

rpc::Message packed(rpc::Message message) {
  if (message.bulk.size() <= kMostPlainTensors && message.control.size() <= kMostPlainFields) {
    return message;
  }
  if (message.bulk.size() > kMostTensors || message.control.size() > kMostPackedFields / 2) {
    throw ResourceExhaustedError(str(
        "a call to a ps task with ", message.bulk.size(), " tensors and ", message.control.size(),
        " bytes of fields; at most ", kMostTensors, " tensors and ", kMostPackedFields / 2,
        " bytes can be sent: use fewer, larger variables, or more ps "
        "tasks"));
  }
  Directory directory{.control = message.control};
  for (const rpc::Bytes& bytes : message.bulk) directory.sizes.push_back(bytes.size);
  std::vector<rpc::Bytes> bulk = pieces_of(message.bulk);
  bulk.insert(bulk.begin(), owned(encode_fields(directory)));
  return {.control = encode_fields(Mark()), .bulk = std::move(bulk)};
}

std::optional<rpc::Message> unpacked(const rpc::Message& message) {
  WireReader mark(message.control, kWhat);
  if (!mark.next() || mark.field() != kPackedField) return std::nullopt;
  if (message.bulk.empty()) mark.fail("it has no fields");
  const auto directory =
      decode_fields<Directory>({message.bulk[0].data, message.bulk[0].size}, kWhat);
  if (directory.sizes.size() > kMostTensors) mark.fail("it has too many tensors");
  rpc::Message whole{.control = std::string(directory.control)};
  whole.control += mark.left();
  Cutter cutter(message.bulk);
  for (const uint64_t size : directory.sizes) whole.bulk.push_back(cutter.next(size, mark));
  if (!cutter.is_at_end()) mark.fail("its bytes are more than its tensors");
  return whole;
}

}  // namespace cohort::internal
