#include <poll.h>

#include <cstring>

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/collective/forming_wait.h"
#include "cohort/collective/shared_memory/connection.h"
#include "cohort/collective/shared_memory/local_socket.h"
#include "cohort/core/error.h"
#include "cohort/core/host/unix_socket.h"

namespace cohort::collective::shared_memory {
namespace {

using internal::str;
using internal::UniqueFd;
using std::chrono::milliseconds;

// Task 0 says at the deadline which tasks are missing. Its message may take this long to arrive.
constexpr milliseconds kMostDelay{500};
constexpr int64_t kMostErrorSize = 64 << 10;

std::string first_task(const GroupMember& member) { return to_string(member.task(0)); }

[[noreturn]] void throw_late(const GroupMember& member) {
  std::rethrow_exception(internal::rpc::make_error(
      Code::kDeadlineExceeded,
      str("the group '", member.group, "' did not form in time: ", first_task(member),
          " did not come to share memory with ", to_string(member.task(member.rank))),
      "", {.peer = first_task(member), .phase = "start"}));
}

[[noreturn]] void throw_lost(const GroupMember& member) {
  std::rethrow_exception(internal::rpc::make_error(
      Code::kUnavailable,
      str(first_task(member), " was lost while the group '", member.group, "' formed"), "",
      {.peer = first_task(member), .phase = "start"}));
}

// Says hello at the place of the invitation. What a dead predecessor of task 0 has left leads
// nowhere: then the next invitation is waited for.
UniqueFd say_hello(const GroupMember& member) {
  for (FormingWait wait(member);;) {
    const auto invitation = wait.value(member.key("shared_memory", 0));
    if (!invitation) throw_late(member);
    const std::string& text = *invitation;
    const size_t space = text.find(' ');
    if (space == std::string::npos || text.size() - space - 1 != Hello::kSecretDigits) {
      throw DataLossError(
          str("the store holds no invitation at '", member.key("shared_memory", 0), "'"));
    }
    std::optional<UniqueFd> fd = connect_to(text.substr(0, space));
    if (!fd) {
      if (wait.is_over()) throw_late(member);
      ::poll(nullptr, 0, 10);
      continue;
    }
    if (!internal::is_of_same_user(fd->get())) {
      throw PermissionDeniedError(str("the process that invites to share memory in place of ",
                                      first_task(member), " is another user's"));
    }
    Hello hello{.generation = member.generation, .rank = member.rank};
    std::memcpy(hello.secret, text.data() + space + 1, Hello::kSecretDigits);
    const std::span<const char> bytes(reinterpret_cast<const char*>(&hello), sizeof hello);
    if (!send_all(fd->get(), bytes, {}, wait)) throw_lost(member);
    return std::move(*fd);
  }
}

void receive(const GroupMember& member, int fd, std::span<char> bytes,
             std::vector<UniqueFd>& descriptors) {
  FormingWait wait(member, kMostDelay);
  switch (receive_all(fd, bytes, descriptors, wait)) {
    case Received::kAll:
      return;
    case Received::kLate:
      throw_late(member);
    case Received::kClosed:
      throw_lost(member);
  }
}

// Throws the error that comes instead.
Answer receive_answer(const GroupMember& member, int fd, std::vector<UniqueFd>& descriptors) {
  Answer answer;
  receive(member, fd, {reinterpret_cast<char*>(&answer), sizeof answer}, descriptors);
  if (answer.error_bytes == 0) return answer;
  if (answer.error_bytes < 0 || answer.error_bytes > kMostErrorSize) throw_lost(member);
  std::string error(static_cast<size_t>(answer.error_bytes), '\0');
  receive(member, fd, error, descriptors);
  std::rethrow_exception(internal::rpc::decode_error(error));
}

void check(const GroupMember& member, const Layout& layout, size_t num_descriptors) {
  const auto tasks = static_cast<size_t>(member.size());
  if (layout.num_tasks != member.size() || layout.region_bytes <= 0 ||
      layout.region_bytes > kRegionBytes || layout.region_bytes % kPageBytes != 0) {
    throw FailedPreconditionError(str(first_task(member), " shares memory between ",
                                      layout.num_tasks, " tasks, and this one expects ", tasks,
                                      "; do all run the same program?"));
  }
  if (num_descriptors != tasks + 2) {
    throw ResourceExhaustedError(str("of ", tasks + 2, " file descriptors ", num_descriptors,
                                     " have arrived; see `ulimit -n`"));
  }
}

}  // namespace

Connection join_tasks(const GroupMember& member) {
  const UniqueFd fd = say_hello(member);
  std::vector<UniqueFd> descriptors;
  Connection connection;
  connection.layout = receive_answer(member, fd.get(), descriptors).layout;
  check(member, connection.layout, descriptors.size());
  connection.file = SharedFile(std::move(descriptors[0]), connection.layout.file_bytes());
  connection.common = connection.file.map(0, connection.layout.common_bytes());
  UniqueFd own = std::move(descriptors[1]);
  descriptors.erase(descriptors.begin(), descriptors.begin() + 2);
  connection.lifelines = Lifelines(std::move(own), std::move(descriptors));

  const char ready = 1;
  FormingWait wait(member);
  if (!send_all(fd.get(), {&ready, 1}, {}, wait)) throw_lost(member);
  std::vector<UniqueFd> none;
  receive_answer(member, fd.get(), none);
  return connection;
}

}  // namespace cohort::collective::shared_memory
