#include "cohort/keras/callbacks/csv_logger.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/text.h"

namespace cohort::keras::callbacks {

using internal::quoted;
using internal::str;

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
  errno = 0;
  file_ = std::make_shared<std::ofstream>(
      filename_, options_.append ? std::ios::app : std::ios::out | std::ios::trunc);
  if (!*file_) {
    internal::throw_error(errno == EACCES ? Code::kPermissionDenied : Code::kNotFound,
                          str("cannot write ", quoted(filename_), ": ", std::strerror(errno)));
  }
  file_->precision(std::numeric_limits<double>::max_digits10);
}

void CSVLogger::on_epoch_end(int64_t epoch, Logs& logs) {
  if (file_ == nullptr) return;
  if (columns_.empty()) {
    for (const auto& entry : logs) columns_.push_back(entry.first);
    if (needs_header_) {
      *file_ << "epoch";
      for (const std::string& column : columns_) *file_ << options_.separator << column;
      *file_ << '\n';
    }
  }
  *file_ << epoch;
  for (const std::string& column : columns_) {
    *file_ << options_.separator;
    if (const auto value = logs.find(column)) {
      *file_ << *value;
    } else {
      *file_ << "NA";
    }
  }
  errno = 0;
  *file_ << '\n' << std::flush;
  if (*file_) return;
  internal::log(logging::Level::kError, "CSVLogger: ", quoted(filename_), " gets no line of epoch ",
                epoch, ", nor of those after it, training goes on: ", std::strerror(errno));
  file_.reset();
}

void CSVLogger::on_train_end(const Logs&) { file_.reset(); }

}  // namespace cohort::keras::callbacks
