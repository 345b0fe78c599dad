#include "cohort/transform/analysis/token_blocks.h"

#include <algorithm>
#include <utility>

#include "cohort/core/bytes/varint.h"
#include "cohort/core/error.h"
#include "cohort/core/files/temporary_files.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

constexpr size_t kBlockBytes = size_t{64} << 10;

template <class Amount>
class RunReader final : public TokenStream<Amount> {
 public:
  RunReader(FileSystem& files, const std::string& path) : file_(files.open(path), path) {}

  bool next() override {
    while (!block_ || !block_->next()) {
      if (next_block_ == file_.size()) return false;
      bytes_ = file_.read(next_block_++);
      block_.emplace(bytes_, str("file ", quoted(file_.path())));
    }
    this->entry_ = std::move(block_->entry());
    return true;
  }

 private:
  const BlobFile file_;
  int64_t next_block_ = 0;
  std::string bytes_;
  std::optional<TokenBlock<Amount>> block_;
};

template <class Amount>
void write_blocks(BlobFileWriter& writer, TokenStream<Amount>& stream) {
  TokenBlockWriter block;
  while (stream.next()) {
    block.add(stream.entry());
    if (block.size() >= kBlockBytes) writer.append(block.take());
  }
  if (block.size() > 0) writer.append(block.take());
  writer.finish("");
}

}  // namespace

void TokenBlockWriter::add_token(std::string_view token) {
  const auto shared = static_cast<size_t>(
      std::mismatch(token.begin(), token.end(), last_.begin(), last_.end()).first - token.begin());
  append_varint(bytes_, shared);
  append_varint(bytes_, token.size() - shared);
  bytes_ += token.substr(shared);
  last_.resize(shared);
  last_ += token.substr(shared);
}

template <class Amount>
bool TokenBlock<Amount>::next() {
  if (left_.empty()) return false;
  try {
    const uint64_t shared = take_varint(left_);
    const uint64_t more = take_varint(left_);
    if (shared > token_.size() || more > left_.size()) {
      throw DataLossError("a token is longer than there are bytes");
    }
    token_.resize(shared);
    token_ += left_.substr(0, more);
    left_.remove_prefix(more);
    this->entry_.amount = Amount::take(left_);
  } catch (const DataLossError& error) {
    throw DataLossError(str(what_, ": a list of tokens is damaged: ", error.what()));
  }
  this->entry_.token = token_;
  return true;
}

template <class Amount>
std::unique_ptr<TokenRun> TokenRun::write(FileSystem& files, const std::string& directory,
                                          TokenStream<Amount>& stream) {
  const std::string path = unlocked_temporary_path(directory, "tokens");
  try {
    BlobFileWriter writer(files, path);
    std::unique_ptr<TokenRun> run(new TokenRun(files, path));
    write_blocks(writer, stream);
    return run;
  } catch (const ResourceExhaustedError& error) {
    throw ResourceExhaustedError(str("tokens that exceed the memory limit cannot be written to ",
                                     quoted(directory), ": ", error.what(),
                                     "; free space there, name another directory for spilled "
                                     "tokens, or raise the memory limit"));
  }
}

TokenRun::~TokenRun() {
  try {
    if (files_.exists(path_)) files_.remove(path_);
  } catch (const std::exception&) {  // the next writer in the directory tries again
  }
}

template <class Amount>
TokenStreamPtr<Amount> TokenRun::read() const {
  return std::make_unique<RunReader<Amount>>(files_, path_);
}

template class TokenBlock<TokenCount>;
template class TokenBlock<ExactWeight>;
template class TokenBlock<FinalWeight>;
template std::unique_ptr<TokenRun> TokenRun::write(FileSystem&, const std::string&,
                                                   TokenStream<TokenCount>&);
template std::unique_ptr<TokenRun> TokenRun::write(FileSystem&, const std::string&,
                                                   TokenStream<ExactWeight>&);
template std::unique_ptr<TokenRun> TokenRun::write(FileSystem&, const std::string&,
                                                   TokenStream<FinalWeight>&);
template TokenStreamPtr<TokenCount> TokenRun::read() const;
template TokenStreamPtr<ExactWeight> TokenRun::read() const;
template TokenStreamPtr<FinalWeight> TokenRun::read() const;

}  // namespace cohort::internal
