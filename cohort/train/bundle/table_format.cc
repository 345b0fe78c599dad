// Compiled without run-time type information, as leveldb is: its classes have none to derive from.
#include <leveldb/env.h>
#include <leveldb/options.h>
#include <leveldb/table_builder.h>

#include "cohort/core/error.h"
#include "cohort/train/bundle/table.h"

namespace cohort::internal {
namespace {

class StringFile final : public leveldb::WritableFile {
 public:
  leveldb::Status Append(const leveldb::Slice& data) override {
    bytes.append(data.data(), data.size());
    return leveldb::Status::OK();
  }
  leveldb::Status Close() override { return leveldb::Status::OK(); }
  leveldb::Status Flush() override { return leveldb::Status::OK(); }
  leveldb::Status Sync() override { return leveldb::Status::OK(); }

  std::string bytes;
};

}  // namespace

std::string format_table(const std::map<std::string, std::string>& entries) {
  leveldb::Options options;
  options.compression = leveldb::kNoCompression;
  options.block_size = 256 * 1024;
  StringFile file;
  leveldb::TableBuilder builder(options, &file);
  for (const auto& [key, value] : entries) builder.Add(key, value);
  const leveldb::Status status = builder.Finish();
  if (!status.ok()) throw InternalError("leveldb's table builder: " + status.ToString());
  return std::move(file.bytes);
}

}  // namespace cohort::internal
