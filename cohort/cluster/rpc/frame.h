// A message on its way. Every transport carries the same bytes, so that limits, refusals and
// fuzzers are the same for all:
//
//   4 bytes    size of the header, little endian
//   header     fields in protobuf's wire format: the control bytes, the sizes of all bulk bytes,
//              who calls (of a request), the error (of a reply)
//   bulk       one after the other, nothing between them
//
// A transport cuts these bytes into pieces of at most kMaxPieceBytes. Where it cuts means nothing,
// but that the first piece holds the whole header.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/cluster/rpc/message.h"
#include "cohort/core/error.h"
#include "cohort/core/program/task_id.h"

namespace cohort::internal::rpc {

inline constexpr size_t kMaxPieceBytes = size_t{1} << 20;
// No method may allow more than this for its control bytes.
inline constexpr size_t kMaxHeaderBytes = size_t{1} << 19;
// The greatest number of bulks in a message. Each needs memory of its own, also one without bytes.
inline constexpr size_t kMaxBulks = 4096;

// What a caller says of itself, with each request. The task must be the one that the caller's
// channel proves.
struct Claim {
  TaskId task;
  uint64_t incarnation = 0;
  int64_t generation = 0;
};

struct Header {
  std::string control = "";
  std::vector<uint64_t> bulk_sizes = {};
  Claim claim = {};                     // of a request
  std::chrono::nanoseconds timeout{0};  // of a request, over transports that carry none themselves
  std::string error = "";               // of a reply: error_detail.h's bytes; empty where it counts
};

// Bytes to send: a header and the bulk of a message, cut into pieces without copies.
//
//   for (MessageWriter writer(header, message); !writer.piece().empty(); writer.advance()) {
//     send(writer.piece());
//   }
//
// Thread safety: none.
class MessageWriter {
 public:
  MessageWriter() = default;
  // `header`'s control bytes and bulk sizes come from `message`.
  // Errors: ResourceExhausted (the header exceeds kMaxHeaderBytes, or there are more bulks than
  // kMaxBulks).
  MessageWriter(Header header, Message message);

  // The current piece, as slices; none where all have been sent.
  const std::vector<Bytes>& piece() const { return piece_; }
  bool is_last() const { return next_ == parts_.size(); }
  // The number of bytes of all pieces, sent or not.
  size_t total_bytes() const;
  void advance();

 private:
  std::vector<Bytes> parts_;
  size_t next_ = 0;   // of parts_
  size_t taken_ = 0;  // bytes of parts_[next_]
  std::vector<Bytes> piece_;
};

// Bytes received: puts a message together again.
//
//   MessageReader reader("request of membership/register", [](const Header& header) {
//     check(header.claim);
//     return MessageReader::Limits{.bulk_bytes = 0};
//   });
//   while (!reader.complete()) reader.append(received());
//
// Memory for bulk is taken once the header is admitted, and no more than it declares; that of a
// header as its bytes arrive, once its size is. Thread safety: none.
class MessageReader {
 public:
  // The limits that apply while only the size of the header is known.
  struct HeaderLimits {
    size_t bytes = kMaxHeaderBytes;
    size_t num_bulks = kMaxBulks;
    // Called with the size of the header, if that is within `bytes`, before memory is taken. If it
    // throws, the message is refused.
    std::function<void(size_t bytes)> reserve = nullptr;
  };
  struct Limits {
    size_t control_bytes = kMaxHeaderBytes;
    size_t bulk_bytes = 0;
  };
  // Called with the header, before memory is taken for bulk. If it throws, the message is refused.
  using Admit = std::function<Limits(const Header& header)>;

  // `what` begins the texts of errors.
  MessageReader(std::string what, Admit admit);
  MessageReader(std::string what, HeaderLimits header_limits, Admit admit);

  // Errors: what `admit` throws; DataLoss (no message: also where bytes follow its end);
  // ResourceExhausted (above the limits). After an error the reader is of no use.
  void append(std::string_view bytes);
  // Memory into which the next bytes can be received directly; empty if they must be passed to
  // append().
  std::span<char> room() {
    return stage_ == Stage::kBulk ? std::span(to_, left_) : std::span<char>();
  }
  // Tells the reader that `bytes` bytes have been written to room().
  // Errors: as append.
  void filled(size_t bytes);
  bool complete() const { return stage_ == Stage::kComplete; }
  // Errors: DataLoss (more should have come).
  void expect_complete() const;

  // Once complete.
  const Header& header() const { return header_; }
  Message take();

 private:
  enum class Stage : uint8_t { kSize, kHeader, kBulk, kComplete };

  void append_header(std::string_view& bytes);
  void begin_header();
  void append_bulk(std::string_view& bytes);
  void begin_bulk();
  void next_bulk();
  [[noreturn]] void refuse(Code code, std::string_view problem) const;

  std::string what_;
  HeaderLimits header_limits_;
  Admit admit_;
  Stage stage_ = Stage::kSize;
  size_t header_bytes_ = 0;
  std::string encoded_;  // the size, then the header, as they arrive
  Header header_;
  Message message_;
  char* to_ = nullptr;  // where the next byte of the current bulk goes
  size_t left_ = 0;     // of it
};

}  // namespace cohort::internal::rpc
