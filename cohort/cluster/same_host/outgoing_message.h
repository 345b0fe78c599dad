// Messages as pieces on a socket between tasks of one host:
//
//   4 bytes   size of the bytes that follow the head, little endian; at most kMaxPieceBytes
//   1 byte    kind
//   3 bytes   0
//   8 bytes   number of the call, little endian
//
// A caller begins with a hello; each of its calls is a request, then the bytes of its message
// (frame.h) in one or more pieces, of which the last says so. The answer is a message's pieces
// alone.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cohort/cluster/rpc/frame.h"

namespace cohort::internal::rpc {

enum class PieceKind : uint8_t {
  kHello = 1,  // the ticket that the server gave
  kRequest,    // 8 bytes: its timeout in nanoseconds; the method
  kMessage,
  kLast,    // of a message
  kCancel,  // the caller does not wait for the answer any more
  kPing,
  kPong,
};

inline constexpr size_t kPieceHeadBytes = 16;
// The most bytes of a piece that is no part of a message.
inline constexpr size_t kMostControlPieceBytes = 256;

struct PieceHead {
  PieceKind kind = PieceKind::kMessage;
  uint32_t size = 0;
  uint64_t call = 0;
};
std::string encode(const PieceHead& head);
PieceHead decode_piece_head(std::string_view bytes);  // kPieceHeadBytes; not checked

// A piece that is no part of a message, whole.
std::string control_piece(PieceKind kind, uint64_t call, std::string_view bytes = {});

// What is to be sent: a control piece, a message, or the one before the other.
class OutgoingMessage {
 public:
  explicit OutgoingMessage(std::string control);
  OutgoingMessage(std::string control, uint64_t call, MessageWriter writer);

  // What comes next, of the current piece; returns how many of `to` it takes.
  size_t slices(std::span<iovec> to) const;
  // So many bytes of it have been sent.
  void advance(size_t bytes);
  // Whether it is between two pieces, where another message may be sent.
  bool is_between_pieces() const { return sent_ == 0; }
  bool is_done() const { return done_; }
  // What it keeps, of memory of its own and of others, until it is done.
  size_t bytes() const { return bytes_; }

 private:
  void begin_piece();

  uint64_t call_ = 0;
  MessageWriter writer_;
  std::string head_;
  size_t bytes_ = 0;
  size_t size_ = 0;  // of head_ and the writer's piece
  size_t sent_ = 0;
  bool has_message_ = false;
  bool done_ = false;
};

}  // namespace cohort::internal::rpc
