#include "cohort/keras/datasets/directory_index.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <set>

#include "cohort/core/error.h"
#include "cohort/core/error_context.h"
#include "cohort/core/files/file_deadline.h"
#include "cohort/core/files/file_system.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/text.h"
#include "cohort/keras/datasets/numpy_shuffle.h"

namespace cohort::internal {
namespace {

namespace fs = std::filesystem;
using keras::utils::DirectoryDataset;
using keras::utils::DirectoryDatasets;

// 'a', 'b'
template <class Names>
std::string listed(const Names& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + quoted(std::string(name));
  return text;
}

struct LabelledFiles {
  std::vector<std::string> paths;
  std::vector<int64_t> labels;  // one a path; none where there are no labels
  std::vector<std::string> class_names;
};

bool has_format(const std::string& name, const std::vector<std::string_view>& formats) {
  return std::any_of(formats.begin(), formats.end(), [end = lower(name)](std::string_view format) {
    return end.ends_with(format);
  });
}

// A directory below the one that is walked, and the names of its files.
struct Level {
  std::string path;
  std::vector<std::string> files;
};

class Walk {
 public:
  Walk(bool follow_links, std::vector<std::string_view> formats)
      : follow_links_(follow_links), formats_(std::move(formats)) {}

  // The paths of the files below `root`, in the order of the directories' paths, then of names.
  std::vector<std::string> files_of(const std::string& root) {
    add(root);
    std::sort(levels_.begin(), levels_.end(),
              [](const Level& a, const Level& b) { return a.path < b.path; });
    std::vector<std::string> paths;
    for (const Level& level : levels_) {
      for (const std::string& name : level.files) paths.push_back(join_path(level.path, name));
    }
    return paths;
  }

 private:
  void add(const std::string& directory) {
    std::error_code ignored;
    // A directory that is linked from inside of itself is seen once.
    if (follow_links_ && !seen_.insert(fs::canonical(directory, ignored).string()).second) return;
    Level level{directory, {}};
    for (const std::string& name : posix_file_system().list(directory)) {  // sorted
      const std::string path = join_path(directory, name);
      if (!fs::is_directory(path, ignored)) {
        if (has_format(name, formats_)) level.files.push_back(name);
      } else if (follow_links_ || !fs::is_symlink(path, ignored)) {
        add(path);
      }
    }
    levels_.push_back(std::move(level));
  }

  const bool follow_links_;
  const std::vector<std::string_view> formats_;
  std::set<std::string> seen_;
  std::vector<Level> levels_;
};

std::vector<std::string> class_directories(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const std::string& name : posix_file_system().list(directory)) {
    if (name[0] != '.' && fs::is_directory(join_path(directory, name), ignored)) {
      names.push_back(name);
    }
  }
  return names;
}

LabelledFiles inferred_labels(const DirectoryQuery& query) {
  const std::vector<std::string> directories = class_directories(query.directory);
  LabelledFiles found;
  found.class_names = query.class_names.empty() ? directories : query.class_names;
  if (std::set(found.class_names.begin(), found.class_names.end()) !=
      std::set(directories.begin(), directories.end())) {
    throw InvalidArgumentError(str("class_names are [", listed(found.class_names),
                                   "], but the sub-directories of ", quoted(query.directory),
                                   " are [", listed(directories), "]"));
  }
  for (const std::string& name : directories) {
    const auto place = std::find(found.class_names.begin(), found.class_names.end(), name);
    const auto paths =
        Walk(query.follow_links, query.formats).files_of(join_path(query.directory, name));
    found.paths.insert(found.paths.end(), paths.begin(), paths.end());
    found.labels.resize(found.paths.size(), place - found.class_names.begin());
  }
  return found;
}

LabelledFiles given_labels(const DirectoryQuery& query) {
  LabelledFiles found;
  found.paths = Walk(query.follow_links, query.formats).files_of(query.directory);
  if (!query.labels.given()) return found;
  found.labels = *query.labels.given();
  if (found.labels.size() != found.paths.size()) {
    throw InvalidArgumentError(str("there are ", found.labels.size(), " labels, but ",
                                   found.paths.size(), " files in ", quoted(query.directory)));
  }
  for (const int64_t label : std::set(found.labels.begin(), found.labels.end())) {
    found.class_names.push_back(str(label));
  }
  return found;
}

template <class T>
void reorder(std::vector<T>& list, const std::vector<int64_t>& order) {
  if (list.empty()) return;
  std::vector<T> reordered;
  for (const int64_t i : order) reordered.push_back(list[static_cast<size_t>(i)]);
  list = std::move(reordered);
}

// Reads the directory, whose file system may not answer.
LabelledFiles list_files(DirectoryQuery query) {
  const auto found = std::make_shared<LabelledFiles>();
  const std::string directory = query.directory;
  call_within(kDefaultFileDeadline, directory, "listing " + quoted(directory),
              [found, query = std::move(query)] {
                *found = query.labels.inferred() ? inferred_labels(query) : given_labels(query);
              });
  return *found;
}

void check(const DirectoryQuery& query) {
  if (query.labels.given() && !query.class_names.empty()) {
    throw InvalidArgumentError("class_names can be given with labels = \"inferred\" only");
  }
  const auto& mode = query.label_mode;
  if (mode && *mode != "int" && *mode != "categorical" && *mode != "binary") {
    throw InvalidArgumentError(str("label_mode is ", quoted(*mode),
                                   "; it is \"int\", \"categorical\", \"binary\" or std::nullopt"));
  }
  const auto& split = query.validation_split;
  if (split && !(*split > 0 && *split < 1)) {
    throw InvalidArgumentError(str("validation_split is ", *split, "; it must be between 0 and 1"));
  }
  if (split.has_value() != query.subset.has_value()) {
    throw InvalidArgumentError("validation_split and subset are given both or not at all");
  }
  const auto& subset = query.subset;
  if (subset && *subset != "training" && *subset != "validation" && *subset != "both") {
    throw InvalidArgumentError(
        str("subset is ", quoted(*subset), "; it is \"training\", \"validation\" or \"both\""));
  }
  if (split && query.shuffle && !query.seed) {
    throw InvalidArgumentError(
        "with validation_split, files that are shuffled need a seed; else training and validation "
        "would have files in common");
  }
  if (query.batch_size && *query.batch_size < 1) {
    throw InvalidArgumentError(str("batch_size is ", *query.batch_size, "; it must be at least 1"));
  }
}

LabelledFiles find(const DirectoryQuery& given) {
  check(given);
  DirectoryQuery query = given;
  if (!query.label_mode) query.labels = std::nullopt;
  LabelledFiles found = list_files(query);
  const bool labelled = query.labels.inferred() || query.labels.given();
  if (labelled) {
    log_info("Found ", found.paths.size(), " files belonging to ", found.class_names.size(),
             " classes.");
  } else {
    log_info("Found ", found.paths.size(), " files.");
  }
  if (labelled && *query.label_mode == "binary" && found.class_names.size() != 2) {
    throw InvalidArgumentError(str("label_mode \"binary\" is for two classes, but there are ",
                                   found.class_names.size(), ": [", listed(found.class_names),
                                   "]"));
  }
  // Files keep their order without a seed: then each pass is shuffled as a whole, by a seed on
  // which workers agree.
  if (query.shuffle && query.seed) {
    const auto order = numpy_shuffled(std::ssize(found.paths), *query.seed);
    reorder(found.paths, order);
    reorder(found.labels, order);
  }
  return found;
}

// The last files are for validation, as many as the split says.
LabelledFiles subset_of(const LabelledFiles& all, double split, bool validation) {
  const auto size = std::ssize(all.paths);
  const auto held_out = static_cast<int64_t>(split * static_cast<double>(size));
  if (held_out == 0) {
    throw InvalidArgumentError(
        str("validation_split ", split, " of ", size, " files leaves no file for validation"));
  }
  const int64_t begin = validation ? size - held_out : 0;
  const int64_t end = validation ? size : size - held_out;
  LabelledFiles part;
  part.class_names = all.class_names;
  part.paths.assign(all.paths.begin() + begin, all.paths.begin() + end);
  if (!all.labels.empty()) part.labels.assign(all.labels.begin() + begin, all.labels.begin() + end);
  return part;
}

// One row a label. Shapes: [n] int32, [n, 1] float32 or [n, classes] float32.
Tensor encoded_labels(const LabelledFiles& files, const std::string& mode) {
  const auto count = std::ssize(files.labels), classes = std::ssize(files.class_names);
  if (mode == "categorical") {
    const Tensor rows = at::zeros({count, classes}, float32);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t label = files.labels[static_cast<size_t>(i)];
      // A label that is no index of a class has no 1, as with tf.one_hot.
      if (label >= 0 && label < classes) rows[i][label] = 1;
    }
    return rows;
  }
  for (size_t i = 0; i < files.labels.size(); ++i) {
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    if (files.labels[i] >= -kMost - 1 && files.labels[i] <= kMost) continue;
    throw InvalidArgumentError(str("label ", i, " is ", files.labels[i], ", which is no int32"));
  }
  const Tensor labels = at::empty({count}, int64);
  std::copy(files.labels.begin(), files.labels.end(), labels.data_ptr<int64_t>());
  return mode == "binary" ? labels.to(float32).unsqueeze(1) : labels.to(int32);
}

DirectoryDataset dataset_of(const LabelledFiles& files, const DirectoryQuery& query,
                            const ReadFiles& read, bool shuffle) {
  if (files.paths.empty()) {
    throw InvalidArgumentError(str("there are no files in ", quoted(query.directory),
                                   " whose names end with ", listed(query.formats)));
  }
  const bool labelled = !files.labels.empty();
  const StringTensor paths(files.paths);
  const auto named = data::Dataset::from_tensor_slices(
      labelled ? tuple(paths, encoded_labels(files, *query.label_mode)) : Structure(paths));
  data::Dataset dataset = read(named, labelled);
  if (shuffle) {
    const int64_t buffer = !query.seed        ? std::ssize(files.paths)
                           : query.batch_size ? *query.batch_size * 8
                                              : 1024;
    dataset = dataset.shuffle(buffer, {.seed = query.seed});
  }
  if (query.batch_size) dataset = dataset.batch(*query.batch_size);
  return {dataset.prefetch(data::AUTOTUNE), files.class_names, files.paths};
}

}  // namespace

DirectoryDataset directory_dataset(const DirectoryQuery& query, const ReadFiles& read) {
  try {
    if (query.subset == "both") {
      throw InvalidArgumentError(
          "subset \"both\" gives two datasets: call the function whose name begins with "
          "*_datasets_ for them");
    }
    const LabelledFiles all = find(query);
    if (!query.subset) return dataset_of(all, query, read, query.shuffle);
    const auto part = subset_of(all, *query.validation_split, *query.subset == "validation");
    return dataset_of(part, query, read, query.shuffle);
  } catch (const Error&) {
    rethrow_with_context(query.function);
  }
}

DirectoryDatasets directory_datasets(const DirectoryQuery& query, const ReadFiles& read) {
  try {
    if (query.subset != "both") {
      throw InvalidArgumentError("subset is \"both\" where two datasets are asked for");
    }
    const LabelledFiles all = find(query);
    const auto part = [&](bool validation) {
      return subset_of(all, *query.validation_split, validation);
    };
    return {dataset_of(part(false), query, read, query.shuffle),
            dataset_of(part(true), query, read, /*shuffle=*/false)};
  } catch (const Error&) {
    rethrow_with_context(query.function);
  }
}

std::string directory_file_bytes(const std::string& path) {
  const auto file = open_within(posix_file_system(), path, kDefaultFileDeadline);
  constexpr uint64_t kMostBytes = uint64_t{1} << 30;
  if (file->size() > kMostBytes) {
    throw ResourceExhaustedError(str(quoted(path), " has ", file->size(), " bytes; more than ",
                                     kMostBytes, " are not read"));
  }
  std::string bytes(file->size(), '\0');
  file->read(0, bytes.data(), bytes.size());
  return bytes;
}

}  // namespace cohort::internal

namespace cohort::keras::utils {

DirectoryLabels::DirectoryLabels(const std::string& inferred) : inferred_(inferred == "inferred") {
  if (inferred_) return;
  throw InvalidArgumentError(internal::str("labels are ", internal::quoted(inferred),
                                           "; they are \"inferred\", std::nullopt or a list of "
                                           "one integer for each file"));
}

}  // namespace cohort::keras::utils
