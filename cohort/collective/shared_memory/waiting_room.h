// The connections to task 0 while a group forms: tasks of the group, and strangers, which are
// dropped.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "cohort/collective/group_member.h"
#include "cohort/collective/shared_memory/connection.h"
#include "cohort/core/host/unique_fd.h"

namespace cohort::collective::shared_memory {

class WaitingRoom {
 public:
  // Errors: ResourceExhausted.
  explicit WaitingRoom(const GroupMember& member);

  // The text that the others need in order to come: the socket's name and the secret.
  std::string invitation() const { return name_ + ' ' + secret_; }
  // Waits until all tasks are there, or the deadline. Errors: ResourceExhausted, those of
  // GroupMember::check.
  void wait_for_all();
  // The ranks that are not there.
  std::vector<int> missing() const;
  // The socket of the task of this rank, -1: it is not there.
  int task(int rank) const { return tasks_[static_cast<size_t>(rank)].get(); }

 private:
  // Somebody who has not said who they are.
  struct UnidentifiedPeer {
    internal::UniqueFd fd;
    std::array<char, sizeof(Hello)> bytes{};
    size_t size = 0;
  };

  void accept();
  bool listen_to(UnidentifiedPeer& peer);
  void identify(UnidentifiedPeer& peer);
  void forget_the_gone();

  const GroupMember& member_;
  const std::string name_;
  const std::string secret_;
  internal::UniqueFd listener_;
  std::vector<UnidentifiedPeer> unidentified_;
  std::vector<internal::UniqueFd> tasks_;  // by rank; the first stays empty
};

}  // namespace cohort::collective::shared_memory
