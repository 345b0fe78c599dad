#include "cohort/keras/callbacks/csv_logger.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>

#include "cohort/core/error.h"
#include "cohort/core/files/posix_io.h"
#include "cohort/core/host/posix_error.h"
#include "cohort/core/host/unique_fd.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/text.h"
#include "cohort/core/text_stream.h"

namespace cohort::keras::callbacks {

using internal::quoted;
using internal::str;
using internal::UniqueFd;

namespace {

UniqueFd open_file(const std::string& name, bool append) {
  constexpr mode_t kForAll = 0666;
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (append ? O_APPEND : O_TRUNC);
  UniqueFd file(internal::retry_eintr([&] { return ::open(name.c_str(), flags, kForAll); }));
  if (!file.valid()) internal::throw_errno(errno, "opening " + quoted(name));
  return file;
}

// All of it or nothing, where the file can be cut. Returns an errno, 0 for success.
int append_whole(int fd, const std::string& lines) {
  const internal::Transfer done = internal::write_all(fd, lines);
  struct stat status = {};
  if (done.error_number != 0 && done.bytes > 0 && ::fstat(fd, &status) == 0 &&
      S_ISREG(status.st_mode)) {
    internal::set_size(fd, static_cast<uint64_t>(status.st_size) - done.bytes);
  }
  return done.error_number;
}

}  // namespace

CSVLogger::CSVLogger(std::string filename, CSVLoggerOptions options)
    : filename_(std::move(filename)), options_(std::move(options)) {
  if (filename_.empty()) throw InvalidArgumentError("CSVLogger needs a file name");
}

void CSVLogger::on_train_begin() {
  columns_.clear();
  if (!is_chief()) return;
  std::error_code ignored;
  needs_header_ =
      !options_.append || std::filesystem::file_size(filename_, ignored) == 0 || ignored;
  file_ = std::make_shared<UniqueFd>(open_file(filename_, options_.append));
}

void CSVLogger::set_columns(const Logs& logs) {
  for (const auto& entry : logs) columns_.push_back(entry.first);
  const auto is_of_validation = [](const std::string& name) { return name.starts_with("val_"); };
  if (!params().validates || std::any_of(columns_.begin(), columns_.end(), is_of_validation))
    return;
  const size_t of_training = columns_.size();
  for (size_t i = 0; i < of_training; ++i) columns_.push_back("val_" + columns_[i]);
}

void CSVLogger::on_epoch_end(int64_t epoch, Logs& logs) {
  if (file_ == nullptr) return;
  internal::TextStream lines;
  lines.precision(std::numeric_limits<double>::max_digits10);
  if (columns_.empty()) {
    set_columns(logs);
    if (needs_header_) {
      lines << "epoch";
      for (const std::string& column : columns_) lines << options_.separator << column;
      lines << '\n';
    }
  }
  lines << epoch;
  for (const std::string& column : columns_) {
    lines << options_.separator;
    if (const auto value = logs.find(column)) {
      lines << *value;
    } else {
      lines << "NA";
    }
  }
  lines << '\n';
  const int error = append_whole(file_->get(), lines.str());
  if (error == 0) return;
  internal::log(logging::Level::kError, "CSVLogger: ", quoted(filename_), " gets no line of epoch ",
                epoch, ", nor of those after it, training goes on: ", internal::errno_text(error));
  file_.reset();
}

void CSVLogger::on_train_end(const Logs&) { file_.reset(); }
void CSVLogger::on_train_error() { file_.reset(); }

}  // namespace cohort::keras::callbacks
