// How the members of a SaveGroup do something together: an error of one is an error of all.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/threads/bounded_wait.h"
#include "cohort/train/objects/save_group.h"

namespace cohort::internal {

// What the members brought, as the writer has it; elsewhere it is empty.
class MemberReplies {
 public:
  MemberReplies(std::vector<std::string> replies, std::exception_ptr own)
      : replies_(std::move(replies)), own_(std::move(own)) {}
  // The answers by rank. Errors: what one of the members threw instead; this one's own before
  // others'.
  std::vector<std::string_view> all() const;

 private:
  std::vector<std::string> replies_;
  std::exception_ptr own_;
};

// What the writer said.
class WriterReply {
 public:
  WriterReply(std::string reply, std::exception_ptr own)
      : reply_(std::move(reply)), own_(std::move(own)) {}
  // Errors: what the writer threw instead.
  std::string value() const;

 private:
  std::string reply_;
  std::exception_ptr own_;
};

// Every call is collective. An error keeps its class and text on its way; Error::task() names the
// member that it comes from. What is no std::exception goes its way without a word to the others.
// Errors of all calls: also those of SaveGroup's. Thread safety: none.
class GroupTalk {
 public:
  // `about`: "saving 'dir/ckpt-3'", the same on all members. `timeout`: for members to come.
  GroupTalk(std::shared_ptr<train::SaveGroup> group, std::string about,
            std::chrono::milliseconds timeout)
      : group_(std::move(group)), about_(std::move(about)), timeout_(bounded_wait(timeout)) {}

  bool is_writer() const { return group_->is_writer(); }
  const std::shared_ptr<train::SaveGroup>& group() const { return group_; }
  std::chrono::milliseconds timeout() const { return timeout_; }

  // Runs `produce` at the writer, which may take `patience`. Its errors are left to
  // WriterReply::value(); at the writer they come before the group's.
  WriterReply hear(std::string_view step, const std::function<std::string()>& produce,
                   std::chrono::milliseconds patience = {}) const;
  // The same; all get what `produce` returns, or throws.
  std::string tell(std::string_view step, const std::function<std::string()>& produce,
                   std::chrono::milliseconds patience = {}) const;
  // Runs `produce` on every member, for the writer. Its errors are left to MemberReplies::all().
  MemberReplies collect(std::string_view step, const std::function<std::string()>& produce) const;

 private:
  train::SaveGroupCall call(std::string_view step, std::chrono::milliseconds patience) const;

  std::shared_ptr<train::SaveGroup> group_;
  std::string about_;
  std::chrono::milliseconds timeout_;
};

}  // namespace cohort::internal
