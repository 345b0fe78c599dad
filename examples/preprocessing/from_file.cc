#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "sections.h"

namespace preprocessing {

namespace tf = cohort;

namespace {

// A file that lives as long as this object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content) {
    const int descriptor = ::mkstemp(path_.data());
    if (descriptor < 0) throw tf::UnavailableError("no temporary file " + path_);
    ::close(descriptor);
    std::ofstream file(path_);
    file << content;
    file.close();
    if (!file) {
      std::remove(path_.c_str());
      throw tf::UnavailableError("cannot write the temporary file " + path_);
    }
  }
  ~TemporaryFile() { std::remove(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_ = std::filesystem::temp_directory_path() / "vocabulary.XXXXXX";  // by mkstemp
};

void print(const std::string& title, const tf::data::Dataset& dataset) {
  std::cout << title << ":";
  for (const tf::Structure& element : dataset) std::cout << ' ' << element;
  std::cout << '\n';
}

}  // namespace

void from_files() {
  using tf::data::Dataset;
  namespace layers = tf::keras::layers;
  const TemporaryFile words("a\nb\nc\n");
  const TemporaryFile codes("1138\n42\n");
  const tf::distribute::MirroredStrategy strategy;
  auto scope = strategy.scope();

  std::cout << "\nVocabularies from files:\n";
  const layers::StringLookup preprocessing_layer({.vocabulary = words.path(), .mask_token = ""});
  const auto dataset = Dataset::from_tensor_slices(tf::StringTensor({"c", "", "z", "a"}));
  print("words", dataset.map(preprocessing_layer));
  print("words, a batch at a time", dataset.batch(3).map(preprocessing_layer));
  const layers::IntegerLookup integer_preprocessing_layer({.vocabulary = codes.path()});
  print("codes", Dataset::range(41, 44).map(integer_preprocessing_layer));
  const layers::StringLookup inverse(
      {.vocabulary = words.path(), .mask_token = "", .invert = true});
  print("back to words", dataset.map(preprocessing_layer).map(inverse));

  const layers::StringLookup learned;
  learned.adapt(dataset.repeat(2).concatenate(dataset.take(1)));
  std::cout << "learned:";
  for (const std::string& word : learned.get_vocabulary()) std::cout << " '" << word << "'";
  std::cout << '\n';

  const tf::lookup::StaticHashTable table(tf::lookup::TextFileInitializer(words.path()), -1);
  print("a table", dataset.map([&](const tf::StringTensor& word) { return table.lookup(word); }));
}

}  // namespace preprocessing
