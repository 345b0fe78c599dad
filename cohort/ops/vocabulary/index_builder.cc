#include "cohort/ops/vocabulary/index_builder.h"

#include <limits>
#include <memory>
#include <utility>

#include "cohort/core/bytes/fingerprint.h"
#include "cohort/core/files/temporary_files.h"
#include "cohort/core/text.h"
#include "cohort/ops/vocabulary/index_entries.h"
#include "cohort/ops/vocabulary/text_chunks.h"

namespace cohort::internal {
namespace {

constexpr uint64_t kMostSeeds = 8;  // that a second one is needed happens once in millions

class IndexWriter {
 public:
  explicit IndexWriter(WritableFile& file) : file_(file) {}

  void append(std::string_view bytes) {
    file_.append(bytes);
    checksums_.add(bytes);
    position_ += bytes.size();
  }
  void pad_to(uint64_t position) { append(std::string(position - position_, '\0')); }
  std::vector<uint32_t> finish_blocks() { return checksums_.finish(); }

 private:
  WritableFile& file_;
  BlockChecksums checksums_;
  uint64_t position_ = 0;
};

class Build {
 public:
  Build(FileSystem& files, const std::string& text, const std::string& path,
        const IndexBuildOptions& options)
      : files_(files),
        text_(text),
        path_(path),
        temporary_(unlocked_temporary_path(parent_directory(path), base_name(path))),
        options_(options) {}

  std::optional<int64_t> write(uint64_t seed) {
    const std::unique_ptr<ReadableFile> source = open_within(files_, text_, options_.deadline);
    const std::unique_ptr<WritableFile> file =
        files_.create(temporary_, {.expected_bytes = source->size(), .mode = options_.mode});
    try {
      const std::optional<int64_t> lines = write(*source, *file, seed);
      if (!lines) remove_temporary();
      return lines;
    } catch (const std::exception&) {
      remove_temporary();
      throw;
    }
  }

 private:
  std::optional<int64_t> write(const ReadableFile& source, WritableFile& file, uint64_t seed) {
    IndexWriter out(file);
    const TextChunks chunks(source, text_, [&](std::string_view bytes) { out.append(bytes); });
    if (chunks.lines() >= std::numeric_limits<uint32_t>::max()) {
      throw ResourceExhaustedError(str(quoted(text_), " has ", chunks.lines(),
                                       " lines; a vocabulary has at most ",
                                       std::numeric_limits<uint32_t>::max() - 1));
    }
    IndexLayout layout{.text_bytes = source.size(),
                       .lines = chunks.lines(),
                       .function = PerfectHash::for_keys(chunks.lines(), seed),
                       .column = options_.column};
    out.pad_to(layout.entries_at());
    IndexEntries entries(chunks, layout,
                         {.threads = options_.threads,
                          .memory_bytes = options_.memory_bytes,
                          .hash = options_.hash != nullptr ? options_.hash : fingerprint64});
    if (!entries.build([&](std::string_view bytes) { out.append(bytes); })) return std::nullopt;
    layout.twins = entries.twins().size();
    out.pad_to(layout.pilots_at());
    out.append(entries.pilots());
    out.pad_to(layout.lines_at());
    out.append(entries.samples());
    out.pad_to(layout.twins_at());
    for (const Twin& twin : entries.twins()) {
      out.append({reinterpret_cast<const char*>(&twin), sizeof twin});
    }
    out.pad_to(layout.checksums_at());
    write_end(file, layout, out.finish_blocks());
    return static_cast<int64_t>(layout.lines);
  }

  void write_end(WritableFile& file, const IndexLayout& layout,
                 const std::vector<uint32_t>& checksums) {
    const std::string_view bytes(reinterpret_cast<const char*>(checksums.data()),
                                 checksums.size() * sizeof(uint32_t));
    file.append(bytes);
    file.append(std::string(layout.identity_at() - layout.checksums_at() - bytes.size(), '\0'));
    std::string identity = encode_identity(options_.identity.value_or(TextIdentity{}));
    if (!options_.identity) identity.assign(identity.size(), '\0');
    file.append(identity);
    file.append(encode_trailer(layout, bytes));
    file.sync();
    file.close();
    files_.rename(temporary_, path_);
    files_.sync_directory(parent_directory(path_));
  }

  void remove_temporary() const {
    try {
      files_.remove(temporary_);
    } catch (const std::exception&) {  // the next to build here removes it
    }
  }

  FileSystem& files_;
  const std::string text_, path_, temporary_;
  const IndexBuildOptions& options_;
};

}  // namespace

int64_t build_vocabulary_index(FileSystem& files, const std::string& text, const std::string& path,
                               const IndexBuildOptions& options) {
  for (uint64_t seed = 0; seed < kMostSeeds; ++seed) {
    if (const auto lines = Build(files, text, path, options).write(seed)) return *lines;
  }
  throw InternalError(str("no perfect hash function was found for the lines of ", quoted(text)));
}

}  // namespace cohort::internal
