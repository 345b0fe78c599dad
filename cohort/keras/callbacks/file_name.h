// File names with numbers in them: "weights.{epoch:02d}-{val_loss:.2f}".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cohort/keras/model/logs.h"

namespace cohort::internal {

// {epoch} and {batch} count from 1, other names are of the logs. After a colon: the width, perhaps
// with a leading 0, a point and the digits after it, and d, f, e or g, each of which may be
// missing.
// Errors: InvalidArgument (a brace without its other; a name that is not there, with those that
// are; a format).
std::string formatted_file_name(const std::string& pattern, int64_t epoch,
                                std::optional<int64_t> batch, const keras::Logs& logs);

// The names of logs in the pattern, without epoch and, where there is one, batch.
// Errors: InvalidArgument (a brace without its other; a format).
std::vector<std::string> log_names_in(const std::string& pattern, bool has_batch);

// The deepest directory that all files of the pattern lie in: "run" of "run/{epoch}/model".
std::string common_directory(const std::string& pattern);

}  // namespace cohort::internal
