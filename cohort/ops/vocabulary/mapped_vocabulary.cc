#include "cohort/ops/vocabulary/mapped_vocabulary.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>

#include "cohort/core/bytes/fingerprint.h"
#include "cohort/core/files/file_deadline.h"
#include "cohort/core/files/temporary_files.h"
#include "cohort/core/host/cgroups.h"
#include "cohort/core/host/cores.h"
#include "cohort/core/host/posix_error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/text.h"
#include "cohort/core/threads/backoff.h"
#include "cohort/ops/vocabulary/text_chunks.h"

namespace cohort::internal {
namespace {

constexpr const char* kSuffix = ".cohort-index";
constexpr int64_t kSecond = 1'000'000'000;  // in nanoseconds

int64_t nanoseconds(const timespec& time) { return time.tv_sec * kSecond + time.tv_nsec; }

struct TextState {
  TextIdentity identity;
  uint32_t mode = 0;
  uint32_t owner = 0;
  // Whether whatever changes the text from now on changes its times, too.
  bool is_settled = false;
};

TextState state_of(const std::string& path, std::chrono::nanoseconds settled_after) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) throw_errno(errno, "examining " + quoted(path));
  std::timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const int64_t modified = nanoseconds(status.st_mtim), changed = nanoseconds(status.st_ctim);
  return {{static_cast<uint64_t>(status.st_size), modified, changed, status.st_ino},
          status.st_mode,
          status.st_uid,
          nanoseconds(now) - std::max(modified, changed) > settled_after.count()};
}

int usable_cores() {
  const cpu_set_t cores = own_cores();
  return cores_under(Cgroups().cpu_quota(), std::max(1, CPU_COUNT(&cores)));
}

std::string index_name(const std::string& name, const TokenColumn& column) {
  if (column.index == TokenColumn::kWholeLine) return name + kSuffix;
  return str(name, ".column-", column.index, '-',
             hex_digits(static_cast<unsigned char>(column.delimiter), 2), kSuffix);
}

// Nothing: the user has no home.
std::optional<std::string> cache_directory() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return str(cache, "/cohort/vocabularies");
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return str(home, "/.cache/cohort/vocabularies");
  return std::nullopt;
}

}  // namespace

std::vector<std::string> vocabulary_index_paths(const std::string& text,
                                                const TokenColumn& column) {
  const std::string name = index_name(base_name(text), column);
  std::vector<std::string> paths = {join_path(parent_directory(text), name)};
  std::error_code ignored;
  const std::string absolute = std::filesystem::absolute(text, ignored).lexically_normal();
  if (const auto cache = cache_directory()) {
    paths.push_back(join_path(*cache, str(hex_digits(fingerprint64(absolute), 16), '-', name)));
  }
  return paths;
}

MappedVocabulary::MappedVocabulary(std::string text, const std::string& index)
    : text_(std::move(text)), file_(index), index_(file_.bytes(), index) {}

std::string MappedVocabulary::place(int64_t number) const {
  return line_place(text_, static_cast<uint64_t>(number), index_.line_offset(number));
}

bool MappedVocabulary::is_of_text() const {
  const auto file = open_within(posix_file_system(), text_, kDefaultFileDeadline);
  if (file->size() != index_.layout().text_bytes) return false;
  const TextChunks chunks(*file, text_, [](std::string_view) {});
  const auto bytes = chunks.checksums().size() * sizeof(uint32_t);
  return bytes == 0 || std::memcmp(chunks.checksums().data(), index_.checksums(), bytes) == 0;
}

// One call of MappedVocabulary::open.
class VocabularyOpening {
 public:
  using Vocabulary = std::shared_ptr<const MappedVocabulary>;

  VocabularyOpening(const std::string& text, const MappedVocabularyOptions& options)
      : text_(text),
        options_(options),
        paths_(vocabulary_index_paths(text, options.column)),
        deadline_(Backoff::Clock::now() + options.patience) {}

  Vocabulary open() {
    constexpr int kMostBuilds = 3;
    for (int i = 0; i < kMostBuilds; ++i) {
      const TextState state = state_in_time();
      for (const std::string& path : paths_) {
        if (Vocabulary vocabulary = open_index(path, state)) return vocabulary;
      }
      if (state.identity.bytes < options_.least_bytes || !build(state)) return nullptr;
    }
    throw FailedPreconditionError(str(quoted(text_), " changes while its index is built; write a ",
                                      "vocabulary under another name and rename it"));
  }

 private:
  TextState state_in_time() const {
    const auto state = std::make_shared<TextState>();
    call_within(kDefaultFileDeadline, text_, "examining " + quoted(text_),
                [state, text = text_, settled_after = options_.settled_after] {
                  *state = state_of(text, settled_after);
                });
    return *state;
  }

  // Nothing: there is no index, or it is of no use.
  Vocabulary open_index(const std::string& path, const TextState& state) {
    const Vocabulary vocabulary = map_index(path, state);
    if (vocabulary == nullptr) return nullptr;
    const IndexLayout& layout = vocabulary->index().layout();
    if (layout.column == options_.column && layout.text_bytes == state.identity.bytes &&
        is_of_text(*vocabulary, state)) {
      return vocabulary;
    }
    say(logging::Level::kInfo,
        str("The vocabulary ", quoted(text_), " is not the one that ", quoted(path), " is of"));
    return nullptr;
  }

  // Once: an index is looked at again under its lock.
  void say(logging::Level level, const std::string& text) {
    if (text != said_) log(level, text);
    said_ = text;
  }

  Vocabulary map_index(const std::string& path, const TextState& state) {
    try {
      struct stat status {};
      if (::stat(path.c_str(), &status) != 0) return nullptr;
      // Others could say what they like of a text in a directory that all may write to.
      if (status.st_uid != 0 && status.st_uid != ::geteuid() && status.st_uid != state.owner) {
        say(logging::Level::kWarning,
            str(quoted(path), " is not used: it belongs to user ", status.st_uid));
        return nullptr;
      }
      // A mapped file whose server is gone would hold up who touches it, without an end.
      if (open_within(files_, path, kDefaultFileDeadline)->is_remote()) return nullptr;
      return std::make_shared<const MappedVocabulary>(text_, path);
    } catch (const NotFoundError&) {  // just removed
    } catch (const Error& error) {
      say(logging::Level::kWarning, error.what());
    }
    return nullptr;
  }

  bool is_of_text(const MappedVocabulary& vocabulary, const TextState& state) const {
    const IndexLayout& layout = vocabulary.index().layout();
    if (decode_identity(vocabulary.file_.bytes(), layout) == state.identity) return true;
    if (!vocabulary.is_of_text()) return false;
    if (state.is_settled) note_identity(vocabulary, state);
    return true;
  }

  // So that the text need not be read the next time.
  void note_identity(const MappedVocabulary& vocabulary, const TextState& state) const {
    try {
      vocabulary.file_.write(vocabulary.index().layout().identity_at(),
                             encode_identity(state.identity));
    } catch (const Error&) {  // it can be read only, say
    }
  }

  // False: nowhere can an index be.
  bool build(const TextState& state) {
    std::string why = "another machine serves it, and there is no cache directory";
    const bool text_is_remote = open_within(files_, text_, kDefaultFileDeadline)->is_remote();
    for (size_t i = 0; i < paths_.size(); ++i) {
      if (i == 0 && text_is_remote) continue;
      try {
        if (i > 0) files_.make_directories(parent_directory(paths_[i]));
        const std::unique_ptr<FileLock> lock = wait_for_lock(paths_[i] + ".lock", why);
        if (lock == nullptr) continue;
        if (!open_index(paths_[i], state)) build_at(paths_[i], state);
        return true;
      } catch (const PermissionDeniedError& error) {
        why = error.what();
      } catch (const ResourceExhaustedError& error) {
        why = error.what();
      }
    }
    log_warning("The vocabulary ", quoted(text_), " is read and not mapped: ", why,
                "; `cohort vocabulary index` builds its index ahead");
    return false;
  }

  void build_at(const std::string& path, const TextState& state) {
    remove_unlocked_left_overs(files_, parent_directory(path));
    const auto start = Backoff::Clock::now();
    const int64_t tokens = build_vocabulary_index(
        files_, text_, path,
        {.column = options_.column,
         .identity = state.is_settled ? std::optional(state.identity) : std::nullopt,
         .threads = options_.threads > 0 ? options_.threads : usable_cores(),
         .mode = (state.mode & 0444) | 0600});
    const std::chrono::duration<double> took = Backoff::Clock::now() - start;
    log_info("Indexed the vocabulary ", quoted(text_), ": ", tokens, " tokens in ",
             fixed_digits(took.count(), 2), " s; the index is ", quoted(path));
  }

  // Nothing: no file can be made there; `why` then says it.
  std::unique_ptr<FileLock> wait_for_lock(const std::string& path, std::string& why) {
    const std::string owner = str("process ", ::getpid(), ", which indexes ", quoted(text_));
    Backoff pauses(std::chrono::milliseconds(5), std::chrono::milliseconds(200));
    for (bool is_first = true;; is_first = false) {
      try {
        return files_.lock(path, owner);
      } catch (const FailedPreconditionError& error) {
        if (is_first) log_info("Waiting for the index of ", quoted(text_), ": ", error.what());
        if (pauses.sleep(deadline_)) continue;
        throw DeadlineExceededError(str("the index of ", quoted(text_), " is not there after ",
                                        options_.patience.count(), " s: ", error.what()));
      } catch (const Error& error) {
        why = error.what();
        return nullptr;
      }
    }
  }

  FileSystem& files_ = posix_file_system();
  const std::string text_;
  const MappedVocabularyOptions options_;
  const std::vector<std::string> paths_;
  const Backoff::Clock::time_point deadline_;
  std::string said_;
};

std::shared_ptr<const MappedVocabulary> MappedVocabulary::open(
    const std::string& text, const MappedVocabularyOptions& options) {
  return VocabularyOpening(text, options).open();
}

}  // namespace cohort::internal
