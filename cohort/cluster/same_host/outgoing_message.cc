#include "cohort/cluster/same_host/outgoing_message.h"

#include <algorithm>
#include <utility>

namespace cohort::internal::rpc {
namespace {

template <class Number>
void append_number(std::string& text, Number number) {
  for (size_t i = 0; i < sizeof number; ++i) text += static_cast<char>(number >> (8 * i));
}

template <class Number>
Number number_at(std::string_view bytes, size_t at) {
  Number number = 0;
  for (size_t i = 0; i < sizeof number; ++i) {
    number |= static_cast<Number>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  }
  return number;
}

}  // namespace

std::string encode(const PieceHead& head) {
  std::string text;
  text.reserve(kPieceHeadBytes);
  append_number(text, head.size);
  append_number(text, static_cast<uint32_t>(head.kind));
  append_number(text, head.call);
  return text;
}

PieceHead decode_piece_head(std::string_view bytes) {
  return {.kind = static_cast<PieceKind>(bytes[4]),
          .size = number_at<uint32_t>(bytes, 0),
          .call = number_at<uint64_t>(bytes, 8)};
}

std::string control_piece(PieceKind kind, uint64_t call, std::string_view bytes) {
  std::string piece =
      encode({.kind = kind, .size = static_cast<uint32_t>(bytes.size()), .call = call});
  return piece.append(bytes);
}

OutgoingMessage::OutgoingMessage(std::string control)
    : head_(std::move(control)), bytes_(sizeof *this + head_.size()) {}

OutgoingMessage::OutgoingMessage(std::string control, uint64_t call, MessageWriter writer)
    : call_(call),
      writer_(std::move(writer)),
      head_(std::move(control)),
      bytes_(sizeof *this + head_.size() + writer_.total_bytes()),
      has_message_(true) {
  begin_piece();
}

void OutgoingMessage::begin_piece() {
  size_t bytes = 0;
  for (const Bytes& part : writer_.piece()) bytes += part.size;
  head_ += encode({.kind = writer_.is_last() ? PieceKind::kLast : PieceKind::kMessage,
                   .size = static_cast<uint32_t>(bytes),
                   .call = call_});
  size_ = head_.size() + bytes;
}

size_t OutgoingMessage::slices(std::span<iovec> to) const {
  size_t count = 0;
  size_t skip = sent_;
  const auto add = [&](const char* data, size_t size) {
    if (skip >= size) {
      skip -= size;
    } else if (count < to.size()) {
      to[count++] = {const_cast<char*>(data) + skip, size - skip};
      skip = 0;
    }
  };
  add(head_.data(), head_.size());
  if (!has_message_) return count;
  for (const Bytes& part : writer_.piece()) add(part.data, part.size);
  return count;
}

void OutgoingMessage::advance(size_t bytes) {
  sent_ += bytes;
  if (sent_ < (has_message_ ? size_ : head_.size())) return;
  sent_ = 0;
  if (!has_message_ || writer_.is_last()) {
    done_ = true;
    return;
  }
  head_.clear();
  writer_.advance();
  begin_piece();
}

}  // namespace cohort::internal::rpc
