// One end of a connection between tasks of one host: sends messages from any thread, and receives on a
// thread of its own.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cohort/cluster/same_host/outgoing_message.h"
#include "cohort/core/files/unique_fd.h"

namespace cohort::internal::rpc {

// Nobody ever waits for room in the socket: what does not fit leaves later, from the socket's thread.
// Pieces of several messages take turns. Thread safety: any thread.
class HostSocket : public std::enable_shared_from_this<HostSocket> {
 public:
  // All on the socket's thread. What on_control and on_bytes throw ends the connection.
  struct Events {
    // A piece that is no part of a message.
    std::function<void(const PieceHead& head, std::string_view bytes)> on_control;
    // The next bytes of a piece of a message, as they come; whether they are the last of the message.
    std::function<void(uint64_t call, std::string_view bytes, bool is_last)> on_bytes;
    // Where on_bytes would copy the next of many bytes; empty: it must be given them. Then how many
    // were received there, as on_bytes.
    std::function<std::span<char>(uint64_t call)> room;
    std::function<void(uint64_t call, size_t bytes, bool is_last)> on_filled;
    // About every 100 ms.
    std::function<void()> on_tick;
    // The connection has ended, by the other end, an error, or end(); nothing comes afterwards.
    std::function<void(const std::string& why)> on_end;
  };

  // `socket` is non-blocking. Errors: ResourceExhausted (no descriptor).
  static std::shared_ptr<HostSocket> make(UniqueFd socket);
  // Receives from now on, once. Errors: ResourceExhausted (no thread).
  void start(Events events);
  ~HostSocket();

  // Without effect once the connection has ended.
  void send(OutgoingMessage message);
  // Ends the connection; the first reason counts.
  void end(const std::string& why);
  // Waits for the thread, unless called on it.
  void join();

 private:
  explicit HostSocket(UniqueFd socket);
  void run();
  void flush();
  bool send_some();
  void receive();
  // Whether it did: the rest of a large piece.
  bool receive_in_place();
  // Of recv(): whether bytes came.
  bool check_received(ssize_t got);
  void take(std::string_view bytes);
  void begin_piece();
  void wake();
  std::string why_it_ended();

  const UniqueFd socket_;
  const UniqueFd wake_event_;
  Events events_;
  std::thread thread_;

  std::mutex mutex_;  // guards what follows
  std::deque<OutgoingMessage> queue_;
  bool waits_for_room_ = false;  // the thread sends the rest of the queue
  bool ended_ = false;
  std::string why_;

  // Of the thread.
  std::vector<char> buffer_;
  std::string head_;     // of the current piece, as it comes
  std::string control_;  // bytes of a piece that is no part of a message, as they come
  PieceHead piece_;
  size_t left_ = 0;  // of the current piece
  bool in_piece_ = false;
};

}  // namespace cohort::internal::rpc
