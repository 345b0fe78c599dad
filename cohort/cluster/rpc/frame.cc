#include "cohort/cluster/rpc/frame.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "cohort/cluster/rpc/bulk_memory.h"
#include "cohort/core/bytes/varint.h"
#include "cohort/core/bytes/wire.h"
#include "cohort/core/text.h"

namespace cohort::internal::rpc {
namespace {

constexpr size_t kSizeBytes = 4;

enum Field : uint32_t {
  kControl = 1,
  kBulkSizes = 2,  // packed
  kJob = 3,
  kIndex = 4,
  kIncarnation = 5,
  kGeneration = 6,
  kTimeout = 7,  // nanoseconds
  kError = 8,
};

std::string encode(const Header& header, const Message& message) {
  WireWriter fields;
  if (!message.control.empty()) fields.bytes(kControl, message.control);
  if (!message.bulk.empty()) {
    std::string sizes;
    for (const Bytes& bytes : message.bulk) append_varint(sizes, bytes.size);
    fields.bytes(kBulkSizes, sizes);
  }
  const Claim& claim = header.claim;
  if (!claim.task.job.empty()) {
    fields.bytes(kJob, claim.task.job).varint(kIndex, static_cast<uint64_t>(claim.task.index));
  }
  if (claim.incarnation != 0) fields.varint(kIncarnation, claim.incarnation);
  if (claim.generation != 0) fields.varint(kGeneration, static_cast<uint64_t>(claim.generation));
  if (header.timeout.count() > 0) {
    fields.varint(kTimeout, static_cast<uint64_t>(header.timeout.count()));
  }
  if (!header.error.empty()) fields.bytes(kError, header.error);
  return fields.str();
}

uint64_t take_number(WireReader& fields, uint64_t most) {
  const uint64_t number = fields.varint();
  if (number > most) fields.fail(str("field ", fields.field(), " is out of range"));
  return number;
}

void take_bulk_sizes(std::string_view packed, size_t most, const std::string& what,
                     std::vector<uint64_t>& sizes) {
  while (!packed.empty()) {
    if (sizes.size() == most) {
      throw ResourceExhaustedError(str(what, ": it has more than the ", most,
                                       " tensors that are taken",
                                       most > 0 ? ". Send them in several calls" : ""));
    }
    sizes.push_back(take_varint(packed));
  }
}

Header decode(std::string_view bytes, size_t most_bulks, const std::string& what) {
  Header header;
  WireReader fields(bytes, what);
  while (fields.next()) {
    switch (fields.field()) {
      case kControl:
        header.control = fields.bytes();
        break;
      case kBulkSizes:
        take_bulk_sizes(fields.bytes(), most_bulks, what, header.bulk_sizes);
        break;
      case kJob:
        header.claim.task.job = fields.bytes();
        break;
      case kIndex:
        header.claim.task.index = static_cast<int>(take_number(fields, INT32_MAX));
        break;
      case kIncarnation:
        header.claim.incarnation = fields.varint();
        break;
      case kGeneration:
        header.claim.generation = static_cast<int64_t>(take_number(fields, INT64_MAX));
        break;
      case kTimeout:
        header.timeout = std::chrono::nanoseconds(take_number(fields, INT64_MAX));
        break;
      case kError:
        header.error = fields.bytes();
        break;
    }
  }
  return header;
}

Bytes owned(std::string text) {
  auto owner = std::make_shared<const std::string>(std::move(text));
  return {owner, owner->data(), owner->size()};
}

}  // namespace

MessageWriter::MessageWriter(Header header, Message message) {
  if (message.bulk.size() > kMaxBulks) {
    throw ResourceExhaustedError(str("a message of ", message.bulk.size(), " tensors; at most ",
                                     kMaxBulks, " can be sent. Send them in several calls"));
  }
  const std::string fields = encode(header, message);
  if (fields.size() > kMaxHeaderBytes) {
    throw ResourceExhaustedError(str("a message of ", message.control.size(), " control bytes and ",
                                     message.bulk.size(), " tensors needs a header of ",
                                     fields.size(), " bytes; at most ", kMaxHeaderBytes,
                                     " can be sent. Send large values as bulk bytes"));
  }
  std::string head(kSizeBytes, '\0');
  for (size_t i = 0; i < kSizeBytes; ++i) head[i] = static_cast<char>(fields.size() >> (8 * i));
  parts_.reserve(1 + message.bulk.size());
  parts_.push_back(owned(head + fields));
  for (Bytes& bytes : message.bulk) {
    if (bytes.size > 0) parts_.push_back(std::move(bytes));
  }
  advance();
}

size_t MessageWriter::total_bytes() const {
  size_t bytes = 0;
  for (const Bytes& part : parts_) bytes += part.size;
  return bytes;
}

void MessageWriter::advance() {
  piece_.clear();
  size_t room = kMaxPieceBytes;
  while (room > 0 && next_ < parts_.size()) {
    const Bytes& part = parts_[next_];
    const size_t size = std::min(room, part.size - taken_);
    piece_.push_back({part.owner, part.data + taken_, size});
    room -= size;
    taken_ += size;
    if (taken_ == part.size) {
      ++next_;
      taken_ = 0;
    }
  }
}

MessageReader::MessageReader(std::string what, Admit admit)
    : MessageReader(std::move(what), {}, std::move(admit)) {}

MessageReader::MessageReader(std::string what, HeaderLimits header_limits, Admit admit)
    : what_(std::move(what)), header_limits_(std::move(header_limits)), admit_(std::move(admit)) {}

void MessageReader::append(std::string_view bytes) {
  while (!bytes.empty()) {
    switch (stage_) {
      case Stage::kSize:
      case Stage::kHeader:
        append_header(bytes);
        break;
      case Stage::kBulk:
        append_bulk(bytes);
        break;
      case Stage::kComplete:
        refuse(Code::kDataLoss, "bytes follow its end");
    }
  }
}

void MessageReader::append_header(std::string_view& bytes) {
  const size_t wanted = (stage_ == Stage::kSize ? kSizeBytes : kSizeBytes + header_bytes_);
  const size_t size = std::min(bytes.size(), wanted - encoded_.size());
  encoded_.append(bytes.substr(0, size));
  bytes.remove_prefix(size);
  if (encoded_.size() < wanted) return;
  if (stage_ == Stage::kSize) {
    for (size_t i = 0; i < kSizeBytes; ++i) {
      header_bytes_ |= size_t{static_cast<unsigned char>(encoded_[i])} << (8 * i);
    }
    begin_header();
    if (header_bytes_ > 0) return;
  }
  header_ = decode(std::string_view(encoded_).substr(kSizeBytes), header_limits_.num_bulks, what_);
  encoded_ = {};
  begin_bulk();
}

void MessageReader::begin_header() {
  const size_t most = std::min(header_limits_.bytes, kMaxHeaderBytes);
  if (header_bytes_ > most) {
    refuse(Code::kResourceExhausted,
           str("its header has ", header_bytes_, " bytes; at most ", most,
               " are taken. Send large values as bulk bytes, or in several calls"));
  }
  if (header_limits_.reserve) header_limits_.reserve(header_bytes_);
  stage_ = Stage::kHeader;
}

void MessageReader::begin_bulk() {
  const Limits limits = admit_(header_);
  if (header_.control.size() > limits.control_bytes) {
    refuse(Code::kResourceExhausted,
           str("it has ", header_.control.size(), " control bytes; at most ", limits.control_bytes,
               " are taken. Send large values as bulk bytes"));
  }
  uint64_t left = limits.bulk_bytes;
  for (const uint64_t size : header_.bulk_sizes) {
    if (size > left) {
      refuse(Code::kResourceExhausted,
             str("its ", header_.bulk_sizes.size(), " tensors have more than the ",
                 limits.bulk_bytes, " bytes that are taken. Send them in several calls"));
    }
    left -= size;
  }
  message_.control = std::move(header_.control);
  message_.bulk.reserve(header_.bulk_sizes.size());
  stage_ = Stage::kBulk;
  next_bulk();
}

// Makes room for the next bulk that has bytes.
void MessageReader::next_bulk() {
  while (message_.bulk.size() < header_.bulk_sizes.size()) {
    const size_t size = header_.bulk_sizes[message_.bulk.size()];
    if (size == 0) {
      message_.bulk.emplace_back();
      continue;
    }
    std::shared_ptr<char> memory;
    try {
      memory = bulk_memory(size);
    } catch (const std::bad_alloc&) {
      refuse(Code::kResourceExhausted, str("no memory for a tensor of ", size, " bytes"));
    }
    to_ = memory.get();
    left_ = size;
    message_.bulk.push_back({std::move(memory), to_, size});
    return;
  }
  stage_ = Stage::kComplete;
}

void MessageReader::append_bulk(std::string_view& bytes) {
  const size_t size = std::min(bytes.size(), left_);
  std::memcpy(to_, bytes.data(), size);
  bytes.remove_prefix(size);
  filled(size);
}

void MessageReader::filled(size_t bytes) {
  to_ += bytes;
  left_ -= bytes;
  if (left_ == 0) next_bulk();
}

void MessageReader::expect_complete() const {
  if (!complete()) refuse(Code::kDataLoss, "it was cut short");
}

Message MessageReader::take() { return std::move(message_); }

void MessageReader::refuse(Code code, std::string_view problem) const {
  throw_error(code, str(what_, ": ", problem));
}

}  // namespace cohort::internal::rpc
