// One end of a connection between tasks of one host: sends messages from any thread, and receives
// on a thread of its own, or on one that waits for an answer.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
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
#include "cohort/cluster/same_host/patience.h"
#include "cohort/cluster/same_host/stall.h"
#include "cohort/core/function_ref.h"
#include "cohort/core/host/unique_fd.h"

namespace cohort::internal::rpc {

// Nobody waits for room in the socket: the socket's thread sends later what does not fit; see
// Limits. Pieces of several messages take turns. One thread at a time receives.
// Thread safety: any thread.
class HostSocket : public std::enable_shared_from_this<HostSocket> {
 public:
  // All on the thread that receives. What on_control and on_bytes throw ends the connection.
  struct Events {
    // A piece that is no part of a message.
    std::function<void(const PieceHead& head, std::string_view bytes)> on_control;
    // The next bytes of a piece of a message, as they come; whether they are the last of the
    // message.
    std::function<void(uint64_t call, std::string_view bytes, bool is_last)> on_bytes;
    // The memory into which the next of many bytes can be received directly; empty: they must be
    // given to on_bytes. on_filled then says how many were received there, as on_bytes does.
    std::function<std::span<char>(uint64_t call)> room;
    std::function<void(uint64_t call, size_t bytes, bool is_last)> on_filled;
    // About every 100 ms.
    std::function<void()> on_tick;
    // Whether the rest of a message is to come, beyond the end of a piece; asked after on_tick.
    std::function<bool()> awaits_rest;
    // The connection has ended, by the other end, an error, or end(); nothing comes afterwards.
    std::function<void(const std::string& why)> on_end;
    // Whether the other end is likely to send at once: then the socket's thread looks before it
    // sleeps.
    std::function<bool()> expects_more;
  };

  // During its lifetime, the calling thread receives, unless another one does already. A thread
  // makes it before it sends the request whose answer it waits for: then no other thread is woken
  // for the answer.
  class Receiver {
   public:
    explicit Receiver(HostSocket& socket) : socket_(socket), receives_(socket.take_over()) {}
    ~Receiver() {
      if (receives_) socket_.give_back();
    }
    Receiver(const Receiver&) = delete;
    Receiver& operator=(const Receiver&) = delete;

    // Receives until `done`, which an event of this socket makes true, or the connection's end.
    // Returns at once if another thread receives.
    void until(FunctionRef<bool()> done) {
      if (receives_) socket_.receive_until(done);
    }

   private:
    HostSocket& socket_;
    const bool receives_;
  };

  struct Limits {
    // The other end is given up after this long without a byte, if it does not read what waits for
    // it, or has sent a part of a message and not the rest. The connection ends, and a line of the
    // log names the other process.
    std::chrono::milliseconds stall{20'000};
    // True: nothing is received while much waits to be sent, so that a peer that does not read the
    // answers asks no more. For one end of a connection: two such ends would wait for each other.
    bool receives_when_read = false;
  };

  // `socket` is non-blocking. Errors: ResourceExhausted (no descriptor).
  static std::shared_ptr<HostSocket> make(UniqueFd socket, const Limits& limits);
  // Receives from now on, once. Errors: ResourceExhausted (no thread).
  void start(Events events);
  ~HostSocket();

  // Sends the message; has no effect once the connection has ended.
  void send(OutgoingMessage message);
  // Ends the connection; the first reason counts.
  void end(const std::string& why);
  // Waits for the thread, unless called in an event.
  void join();
  // Whether threads look before they sleep.
  Patience& patience() { return patience_; }

 private:
  HostSocket(UniqueFd socket, const Limits& limits);
  void run();
  void receive_on_thread(uint32_t happened);
  void say_end();
  void send_rest();
  void flush();
  bool send_some();
  bool is_much_queued() const;
  void update_waiting();
  void listen();
  bool take_over();
  void give_back();
  void receive_until(FunctionRef<bool()> done);
  bool look();
  bool taken_over() const { return taken_over_by_ != std::thread::id(); }
  bool receive();
  void receive_some();
  void tick_if_due();
  void give_up_if_stalled(std::chrono::steady_clock::time_point now);
  void give_up(const std::string& why);
  // Whether it did: the rest of a large piece.
  bool receive_in_place();
  // Whether recv() brought bytes.
  bool check_received(ssize_t got);
  void take(std::string_view bytes);
  void begin_piece();
  std::string why_it_ended();

  const UniqueFd socket_;
  const Limits limits_;
  const UniqueFd watch_;  // what the thread waits for at the socket
  std::thread thread_;
  // Written with the mutex.
  std::atomic<bool> ended_{false};
  std::atomic<bool> much_queued_{false};  // nothing is received

  std::mutex mutex_;  // guards what follows
  std::deque<OutgoingMessage> queue_;
  size_t queued_bytes_ = 0;  // OutgoingMessage::bytes of all
  uint64_t sent_bytes_ = 0;
  bool waits_for_room_ = false;  // the thread sends the rest of the queue
  bool thread_receives_ = false;
  std::thread::id taken_over_by_;  // the thread that receives instead
  std::condition_variable given_back_;
  std::string why_;

  // Used by the thread that receives.
  Events events_;
  Patience patience_;
  std::chrono::steady_clock::time_point last_tick_ = std::chrono::steady_clock::now();
  bool came_ = false;  // bytes, by the last call of receive_some
  uint64_t received_bytes_ = 0;
  Stall sending_;
  Stall receiving_;
  std::vector<char> buffer_;
  std::string head_;     // of the current piece, as it comes
  std::string control_;  // bytes of a piece that is no part of a message, as they come
  PieceHead piece_;
  size_t left_ = 0;  // of the current piece
  bool in_piece_ = false;
};

}  // namespace cohort::internal::rpc
