#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/collective/forming_wait.h"
#include "cohort/collective/shared_memory/connection.h"
#include "cohort/collective/shared_memory/local_socket.h"
#include "cohort/collective/shared_memory/waiting_room.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::collective::shared_memory {
namespace {

using internal::str;
using internal::UniqueFd;

std::span<const char> bytes_of(const Answer& answer) {
  return {reinterpret_cast<const char*>(&answer), sizeof answer};
}

std::exception_ptr missing_error(const GroupMember& member, const std::vector<int>& missing) {
  std::string names;
  for (const int rank : missing)
    names += (names.empty() ? "" : ", ") + to_string(member.task(rank));
  return internal::rpc::make_error(
      Code::kDeadlineExceeded,
      str("the group '", member.group, "' did not form in time: ", names,
          " did not come to share memory with ", to_string(member.task(0))),
      "", {.peer = to_string(member.task(missing.front())), .phase = "start"});
}

std::exception_ptr lost_error(const GroupMember& member, int rank) {
  return internal::rpc::make_error(
      Code::kUnavailable,
      str(to_string(member.task(rank)), " was lost while the group '", member.group, "' formed"),
      "", {.peer = to_string(member.task(rank)), .phase = "start"});
}

// A file with memory for what all map.
SharedFile make_file(Layout& layout) {
  for (;; layout.region_bytes /= 16) {
    try {
      SharedFile file(layout.file_bytes());
      file.reserve(0, layout.common_bytes());
      return file;
    } catch (const ResourceExhaustedError&) {
      // Perhaps files may not be so long (`ulimit -f`).
      if (layout.region_bytes <= int64_t{1} << 28) throw;
    }
  }
}

// For each task the end that it holds, and the one by which the others see that.
struct Pipes {
  explicit Pipes(int count) {
    for (int i = 0; i < count; ++i) {
      int ends[2];
      if (::pipe2(ends, O_CLOEXEC) != 0) {
        throw ResourceExhaustedError(str("no pipe: ", internal::errno_text(errno)));
      }
      seen.emplace_back(ends[0]);
      held.emplace_back(ends[1]);
    }
  }
  std::vector<UniqueFd> held, seen;
};

void hand_out(const GroupMember& member, const WaitingRoom& room, const Connection& connection,
              Pipes& pipes) {
  FormingWait wait(member);
  Answer answer;
  answer.layout = connection.layout;
  for (int rank = 1; rank < member.size(); ++rank) {
    UniqueFd held = std::move(pipes.held[static_cast<size_t>(rank)]);
    std::vector<int> descriptors{connection.file.fd(), held.get()};
    for (const UniqueFd& seen : pipes.seen) descriptors.push_back(seen.get());
    if (!send_all(room.task(rank), bytes_of(answer), descriptors, wait)) {
      std::rethrow_exception(lost_error(member, rank));
    }
  }
}

// Every task says when it has mapped the memory.
void wait_until_mapped(const GroupMember& member, const WaitingRoom& room) {
  FormingWait wait(member);
  for (int rank = 1; rank < member.size(); ++rank) {
    char ready = 0;
    std::vector<UniqueFd> none;
    const Received received = receive_all(room.task(rank), {&ready, 1}, none, wait);
    if (received == Received::kLate) std::rethrow_exception(missing_error(member, {rank}));
    if (received == Received::kClosed) std::rethrow_exception(lost_error(member, rank));
  }
}

void tell_all(const GroupMember& member, const WaitingRoom& room, const Answer& answer,
              const std::string& error) {
  FormingWait wait(member);
  for (int rank = 1; rank < member.size(); ++rank) {
    if (room.task(rank) < 0) continue;
    // A task that does not read this has another problem, which its first call will report.
    if (send_all(room.task(rank), bytes_of(answer), {}, wait)) {
      send_all(room.task(rank), error, {}, wait);
    }
  }
}

Connection form(const GroupMember& member, WaitingRoom& room) {
  member.store->set(member.key("shared_memory", 0), room.invitation());
  room.wait_for_all();
  if (const auto missing = room.missing(); !missing.empty()) {
    std::rethrow_exception(missing_error(member, missing));
  }
  member.store->remove(member.key("shared_memory", 0));

  Connection connection;
  connection.layout.num_tasks = member.size();
  connection.file = make_file(connection.layout);
  connection.common = connection.file.map(0, connection.layout.common_bytes());
  Pipes pipes(member.size());
  hand_out(member, room, connection, pipes);
  wait_until_mapped(member, room);
  connection.lifelines = Lifelines(std::move(pipes.held[0]), std::move(pipes.seen));
  return connection;
}

}  // namespace

Connection receive_tasks(const GroupMember& member) {
  WaitingRoom room(member);
  try {
    Connection connection = form(member, room);
    tell_all(member, room, {.layout = connection.layout}, "");
    return connection;
  } catch (...) {
    const std::string error = internal::rpc::encode_error(std::current_exception());
    GroupMember failed = member;
    failed.check = [] {};  // that it cannot form is what it tells
    tell_all(failed, room, {.error_bytes = static_cast<int64_t>(error.size())}, error);
    throw;
  }
}

}  // namespace cohort::collective::shared_memory
