// The tokens that a lookup layer knows: a list, a tensor, or the path of a text file with one token
// a line.
//
//   StringVocabulary vocabulary = {"avenger", "ironman"};
//   StringVocabulary of_file = "vocabulary.txt";
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/structure.h"

namespace cohort {
namespace internal {

struct VocabularyFile {
  std::string path;
};
using VocabularySource = std::variant<std::monostate, Leaf, VocabularyFile>;

}  // namespace internal

namespace keras::layers {

// A file is read once, when a layer gets it, and its bytes are held once: lines end with \n or
// \r\n, and it holds no special tokens. Thread safety: immutable.
class StringVocabulary {
 public:
  // None: the layer will adapt.
  StringVocabulary() = default;
  StringVocabulary(std::initializer_list<std::string_view> tokens)
      : source_(StringTensor(tokens)) {}
  StringVocabulary(const std::vector<std::string>& tokens) : source_(StringTensor(tokens)) {}
  // Shape [n]. Not copied.
  StringVocabulary(StringTensor tokens) : source_(std::move(tokens)) {}
  StringVocabulary(std::string path) : source_(internal::VocabularyFile{std::move(path)}) {}
  StringVocabulary(const char* path) : StringVocabulary(std::string(path)) {}

  const internal::VocabularySource& source() const { return source_; }

 private:
  internal::VocabularySource source_;
};

// A StringVocabulary of integers in decimal.
class COHORT_API IntegerVocabulary {
 public:
  IntegerVocabulary() = default;
  IntegerVocabulary(std::initializer_list<int64_t> tokens)
      : IntegerVocabulary(std::vector<int64_t>(tokens)) {}
  IntegerVocabulary(const std::vector<int64_t>& tokens);
  // Shape [n], any integers.
  IntegerVocabulary(Tensor tokens) : source_(std::move(tokens)) {}
  IntegerVocabulary(std::string path) : source_(internal::VocabularyFile{std::move(path)}) {}
  IntegerVocabulary(const char* path) : IntegerVocabulary(std::string(path)) {}

  const internal::VocabularySource& source() const { return source_; }

 private:
  internal::VocabularySource source_;
};

}  // namespace keras::layers
}  // namespace cohort
