// How a checkpoint comes back: every member of the group reads the same files, and either all
// change their objects or none does.
#include <exception>
#include <new>
#include <ranges>
#include <set>

#include "cohort/core/bytes/fields.h"
#include "cohort/core/durations.h"
#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/text.h"
#include "cohort/train/checkpoint_impl.h"
#include "cohort/train/objects/checkpoint_restore.h"
#include "cohort/train/saving/checkpoint_numbers.h"

namespace cohort::internal {
namespace {

using KeySet = std::set<std::string, std::less<>>;

template <class Texts>
struct TextList {
  Texts texts;
};
template <class Texts>
void fields(auto& f, TextList<Texts>& list) {
  f(1, list.texts);
}

template <class Texts>
std::string format_texts(const Texts& texts) {
  return encode_fields(TextList{std::views::all(texts)});
}

std::vector<std::string> parse_texts(std::string_view bytes) {
  constexpr char kWhat[] = "what a member of the group restores";
  return decode_fields<TextList<std::vector<std::string>>>(bytes, kWhat).texts;
}

// `taken`: what this member's objects take, or an error. Returns what the group's take.
KeySet agree_on_restore(const GroupTalk& talk, const std::function<std::string()>& taken) {
  const MemberReplies brought = talk.collect("what each member takes", taken);
  const std::string all = talk.tell("the outcome", [&] {
    KeySet keys;
    for (const std::string_view one : brought.all()) {
      for (std::string& key : parse_texts(one)) keys.insert(std::move(key));
    }
    return format_texts(keys);
  });
  KeySet keys;
  for (std::string& key : parse_texts(all)) keys.insert(keys.end(), std::move(key));
  return keys;
}

}  // namespace

std::shared_ptr<RestoreSession> CheckpointImpl::restore_own(const std::string& path,
                                                            bool with_counter,
                                                            const RestoreAgreement& agree) try {
  auto session = std::make_shared<RestoreSession>(*files_, path);
  SaveCounter& counter = save_counter();
  const bool existed = counter.exists();
  counter.set_exists(with_counter);
  try {
    session->restore(*root_, agree);
  } catch (...) {
    counter.set_exists(existed);
    session->no_warning();  // the error says it all
    throw;
  }
  const auto& position = restore_position(counter);
  const bool restored = position != nullptr && position->session == session;
  counter.set_exists(existed || restored);
  root_->share_position();
  return session;
} catch (const std::bad_alloc&) {
  throw ResourceExhaustedError(
      str("checkpoint '", path, "' cannot be restored: it takes more memory than there is"));
}

// A member that fails before the agreement takes part in it all the same.
std::shared_ptr<RestoreSession> CheckpointImpl::restore_together(const std::string& path,
                                                                 bool with_counter,
                                                                 const GroupTalk& talk) {
  bool agreed = false;
  try {
    return restore_own(path, with_counter, [&](const KeySet& taken) {
      agreed = true;
      return agree_on_restore(talk, [&] { return format_texts(taken); });
    });
  } catch (const std::exception&) {
    if (agreed) throw;
    const std::exception_ptr own = std::current_exception();
    agree_on_restore(talk, [&]() -> std::string { std::rethrow_exception(own); });
    throw;
  }
}

train::LoadStatus CheckpointImpl::restore(const std::optional<std::string>& path,
                                          const train::RestoreOptions& options) {
  return restore_one_of(path, options, true);
}

train::LoadStatus CheckpointImpl::read(const std::string& path,
                                       const train::RestoreOptions& options) {
  return restore_one_of(path, options, false);
}

train::LoadStatus CheckpointImpl::restore_one_of(const std::optional<std::string>& path,
                                                 const train::RestoreOptions& options,
                                                 bool with_counter) {
  check_not_negative("RestoreOptions: timeout", options.timeout);
  check_not_negative("RestoreOptions: group_timeout", options.group_timeout);
  wait(options.timeout);
  const GroupTalk all = talk("restoring a checkpoint", options.group_timeout);
  const std::vector<std::string> candidates = parse_texts(all.tell("which", [&] {
    std::vector<std::string> paths;
    if (path) paths.push_back(*path);
    if (path && options.fall_back) {
      for (std::string& earlier : earlier_checkpoints(*files_, *path)) {
        paths.push_back(std::move(earlier));
      }
    }
    return format_texts(paths);
  }));
  if (candidates.empty()) return {nullptr, root_};
  for (size_t i = 0;; ++i) {
    const GroupTalk about(all.group(), str("restoring ", quoted(candidates[i])),
                          options.group_timeout);
    const auto next = [&](const Error& error) {
      if (!options.fall_back) return false;
      log_warning("checkpoint '", candidates[i], "' cannot be restored: ", error.what(),
                  i + 1 < candidates.size() ? str("; going back to '", candidates[i + 1], "'")
                                            : std::string("; there is no earlier one"));
      return i + 1 < candidates.size();
    };
    try {
      auto session = restore_together(candidates[i], with_counter, about);
      about.group()->completed(candidates[i]);
      return {std::move(session), root_};
    } catch (const DataLossError& error) {
      if (!next(error)) throw;
    } catch (const NotFoundError& error) {
      if (!next(error)) throw;
    }
  }
}

}  // namespace cohort::internal
