#include "cohort/transform/passes/saved_part.h"

#include <ATen/ops/tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "cohort/core/bytes/wire.h"
#include "cohort/core/error.h"
#include "cohort/core/files/temporary_files.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

// A block is a row of such pairs.
enum BlockField : uint32_t { kPlaceField = 1, kPieceField = 2 };

// In files of blocks, before each one: its bytes.
constexpr size_t kLengthBytes = 8;

std::string length_bytes(size_t length) {
  std::string bytes;
  for (size_t i = 0; i < kLengthBytes; ++i) bytes += static_cast<char>(length >> (8 * i));
  return bytes;
}

size_t read_length(const ReadableFile& file, uint64_t offset) {
  unsigned char bytes[kLengthBytes];
  file.read(offset, bytes, kLengthBytes);
  size_t length = 0;
  for (size_t i = kLengthBytes; i-- > 0;) length = length << 8 | bytes[i];
  return length;
}

// What does not fit into a message.
class BlocksFile {
 public:
  // A name that no temporary file has: the process that writes it may end before it is read.
  BlocksFile(FileSystem& files, const std::string& directory)
      : path_(
            join_path(directory, "part" + base_name(unlocked_temporary_path(directory, "blocks")))),
        file_(files.create(path_)) {}

  void append(const std::string& block) {
    file_->append(length_bytes(block.size()));
    file_->append(block);
    bytes_ += kLengthBytes + block.size();
  }
  // There is no sync: who reads it needs it now or never.
  void close() { file_->close(); }
  const std::string& path() const { return path_; }
  int64_t bytes() const { return static_cast<int64_t>(bytes_); }

 private:
  const std::string path_;
  std::unique_ptr<WritableFile> file_;
  uint64_t bytes_ = 0;
};

void add_blocks_of_file(Accumulators& accumulators, const ReadableFile& file, uint64_t bytes,
                        const std::string& source) {
  if (file.size() != bytes) {
    throw DataLossError(str(source, ": it has ", file.size(), " bytes, but ", bytes,
                            " were written; are all tasks to see one file system?"));
  }
  std::string block;
  for (uint64_t offset = 0; offset < bytes;) {
    const size_t length = read_length(file, offset);
    offset += kLengthBytes;
    if (length > bytes - offset) throw DataLossError(str(source, ": it is damaged"));
    block.resize(length);
    file.read(offset, block.data(), length);
    offset += length;
    add_saved_block(accumulators, block, source);
  }
}

}  // namespace

std::optional<std::string> PartBlocks::next() {
  WireWriter block;
  while (place_ < accumulators_.size() && block.str().size() < kPieceBytes) {
    if (pieces_ == nullptr) pieces_ = accumulators_[place_]->save();
    const std::optional<std::string> piece = pieces_->next();
    if (piece.has_value()) {
      block.varint(kPlaceField, place_).bytes(kPieceField, *piece);
    } else {
      pieces_ = nullptr;
      ++place_;
    }
  }
  if (block.str().empty()) return std::nullopt;
  return std::move(block).str();
}

void add_saved_block(Accumulators& accumulators, std::string_view block, std::string_view source) {
  WireReader reader(block, source);
  uint64_t place = accumulators.size();
  while (reader.next()) {
    if (reader.field() == kPlaceField) place = reader.varint();
    if (reader.field() != kPieceField) continue;
    if (place >= accumulators.size()) reader.fail("is of other analyses");
    accumulators[place]->add_saved(reader.bytes(), source);
  }
}

Structure part_message(PhasePart& part, FileSystem& files, const std::string& directory) {
  std::vector<std::string> blocks;
  size_t bytes = 0;
  std::optional<BlocksFile> file;
  PartBlocks saved(part.accumulators);
  while (std::optional<std::string> block = saved.next()) {
    bytes += block->size();
    if (bytes <= kMostBytesInMessage) {
      blocks.push_back(*std::move(block));
      continue;
    }
    if (!file.has_value()) file.emplace(files, directory);
    file->append(*block);
  }
  if (file.has_value()) file->close();
  const auto num_blocks = static_cast<int64_t>(blocks.size());
  return tuple(at::tensor(std::vector<int64_t>{part.rows, file ? file->bytes() : 0}),
               StringTensor(blocks, {num_blocks}), StringTensor({file ? file->path() : ""}));
}

void add_part_message(PhasePart& whole, const Structure& message, FileSystem& files,
                      std::string_view source) {
  const Tensor& numbers = message[0].tensor();
  whole.rows += numbers[0].item<int64_t>();
  const StringTensor& blocks = message[1].strings();
  for (int64_t i = 0; i < blocks.numel(); ++i) {
    add_saved_block(whole.accumulators, blocks[i], source);
  }
  const std::string path(message[2].strings()[0]);
  if (path.empty()) return;
  add_blocks_of_file(whole.accumulators, *files.open(path),
                     static_cast<uint64_t>(numbers[1].item<int64_t>()),
                     str(source, ": ", quoted(path)));
  files.remove(path);
}

}  // namespace cohort::internal
