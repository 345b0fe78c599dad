// Entries of tokens as bytes, and files of them.
//
// A block: for each entry, how many bytes its token shares with the one before (varint), how many
// more it has (varint), these, and its amount. A run: blocks in a file of blobs (data/records),
// which has their checksums.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cohort/core/files/file_system.h"
#include "cohort/data/records/blob_file.h"
#include "cohort/transform/analysis/token_stream.h"

namespace cohort::internal {

// Thread safety: none.
class TokenBlockWriter {
 public:
  template <class Amount>
  void add(const TokenEntry<Amount>& entry) {
    add_token(entry.token);
    entry.amount.append_to(bytes_);
  }
  size_t size() const { return bytes_.size(); }
  // The block; the next one begins.
  std::string take() {
    last_.clear();
    return std::exchange(bytes_, {});
  }

 private:
  void add_token(std::string_view token);

  std::string bytes_;
  std::string last_;
};

// Reads a block. Errors: DataLoss (the text begins with `what`).
template <class Amount>
class TokenBlock final : public TokenStream<Amount> {
 public:
  // `bytes` must outlive the stream.
  TokenBlock(std::string_view bytes, std::string what) : left_(bytes), what_(std::move(what)) {}
  bool next() override;

 private:
  std::string_view left_;
  const std::string what_;
  std::string token_;
};

// A file of entries; removed with the object. A killed process leaves its files, which the next
// run's writer in the directory removes.
class TokenRun {
 public:
  // Writes all entries of the stream. Errors: FileSystem's; with ResourceExhausted (the disk is
  // full) nothing is left, and the text says what to do.
  template <class Amount>
  static std::unique_ptr<TokenRun> write(FileSystem& files, const std::string& directory,
                                         TokenStream<Amount>& stream);
  ~TokenRun();
  TokenRun(const TokenRun&) = delete;
  TokenRun& operator=(const TokenRun&) = delete;

  // The run must outlive the stream. Errors: DataLoss (the file is damaged), FileSystem's.
  template <class Amount>
  TokenStreamPtr<Amount> read() const;

 private:
  TokenRun(FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {}

  FileSystem& files_;
  const std::string path_;
};

}  // namespace cohort::internal
