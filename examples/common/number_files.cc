#include "common/number_files.h"

#include <stdlib.h>

#include <filesystem>

namespace examples {

namespace tf = cohort;

NumberFiles::NumberFiles(const std::vector<int>& counts)
    : folder_((std::filesystem::temp_directory_path() / "numbers.XXXXXX").string()) {
  if (::mkdtemp(folder_.data()) == nullptr) {
    throw tf::UnavailableError("cannot make the temporary folder " + folder_);
  }
  int number = 0;
  for (const int count : counts) {
    paths_.push_back(folder_ + "/" + std::to_string(paths_.size()) + ".tfrecord");
    tf::io::TFRecordWriter writer(paths_.back());
    for (int i = 0; i < count; ++i) writer.write(std::to_string(number++));
    writer.close();
  }
}

NumberFiles::~NumberFiles() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

tf::data::Dataset NumberFiles::dataset() const {
  return tf::data::TFRecordDataset(paths_).map([](std::string_view record) {
    return static_cast<int64_t>(std::stoll(std::string(record)));
  });
}

}  // namespace examples
