#include "cohort/train/bundle/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/bytes/varint.h"
#include "cohort/core/error.h"
#include "cohort/core/files/crc32c.h"

namespace cohort::internal {
namespace {

using testing::HasSubstr;

std::map<std::string, std::string> many_entries() {
  std::map<std::string, std::string> entries = {{"", "header"}};
  for (int i = 0; i < 5000; ++i) {
    entries.emplace("model/layer-" + std::to_string(i) + "/kernel", std::string(100, 'v'));
  }
  return entries;
}

std::string table_error(std::string_view bytes) {
  try {
    parse_table(bytes, "ckpt.index");
  } catch (const DataLossError& error) {
    return error.what();
  }
  return "no error";
}

// A block with its trailer, as a table has it.
std::string with_trailer(std::string block, char type = 0) {
  block += type;
  uint32_t crc = mask_crc(crc32c(block));
  for (int i = 0; i < 4; ++i, crc >>= 8) block += static_cast<char>(crc & 0xff);
  return block;
}

std::string handle(uint64_t offset, uint64_t size) {
  std::string bytes;
  append_varint(bytes, offset);
  append_varint(bytes, size);
  return bytes;
}

std::string entry(uint64_t shared, std::string_view rest, std::string_view value) {
  std::string bytes;
  append_varint(bytes, shared);
  append_varint(bytes, rest.size());
  append_varint(bytes, value.size());
  return bytes + std::string(rest) + std::string(value);
}

const std::string kOneRestart("\0\0\0\0\1\0\0\0", 8);

// A table of one data block, made by hand.
std::string table_of(const std::string& block, const std::string& index_entry, char type = 0) {
  const std::string data = with_trailer(block + kOneRestart, type);
  const std::string metaindex = with_trailer(kOneRestart);
  const std::string index = with_trailer(index_entry + kOneRestart);
  std::string footer = handle(data.size(), metaindex.size() - 5) +
                       handle(data.size() + metaindex.size(), index.size() - 5);
  footer.resize(40, '\0');
  return data + metaindex + index + footer + std::string("\x57\xfb\x80\x8b\x24\x75\x47\xdb");
}

TEST(Table, ReadsWhatLeveldbWrites) {
  const auto entries = many_entries();
  const std::string bytes = format_table(entries);
  const std::vector<TableEntry> parsed = parse_table(bytes, "ckpt.index");
  ASSERT_EQ(parsed.size(), entries.size());
  size_t i = 0;
  for (const auto& [key, value] : entries) {
    EXPECT_EQ(parsed[i].key, key);
    EXPECT_EQ(parsed[i].value, value);
    ++i;
  }
}

TEST(Table, EveryFlippedByteIsFound) {
  const std::string bytes = format_table({{"", "h"}, {"a", "1"}, {"ab", "2"}});
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const int bit : {0, 3, 7}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      EXPECT_NE(table_error(damaged), "no error") << "byte " << i << ", bit " << bit;
    }
  }
}

TEST(Table, EveryTruncationAndAnythingAddedIsFound) {
  const std::string bytes = format_table({{"", "h"}, {"a", "1"}});
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(table_error(bytes.substr(0, size)), "no error") << size;
  }
  EXPECT_NE(table_error(bytes + '\0'), "no error");
  EXPECT_NE(table_error('\0' + bytes), "no error");
}

TEST(Table, TheHandMadeOneIsGood) {
  const std::string block = entry(0, "a", "1");
  const auto parsed = parse_table(
      table_of(block, entry(0, "b", handle(0, block.size() + kOneRestart.size()))), "ckpt.index");
  ASSERT_EQ(parsed.size(), 1u);
  EXPECT_EQ(parsed[0].key, "a");
}

TEST(Table, SizesThatOverflowAreRefused) {
  const std::string block = entry(0, "a", "1");
  for (const uint64_t size : {~uint64_t{0}, ~uint64_t{0} - 4, uint64_t{1} << 40}) {
    EXPECT_THAT(table_error(table_of(block, entry(0, "b", handle(0, size)))),
                HasSubstr("does not fit"));
  }
  for (const uint64_t length : {~uint64_t{0}, uint64_t{1} << 40}) {
    std::string bad;
    append_varint(bad, 0);
    append_varint(bad, length);
    append_varint(bad, 1);
    bad += "a1";
    EXPECT_THAT(
        table_error(table_of(bad, entry(0, "b", handle(0, bad.size() + kOneRestart.size())))),
        HasSubstr("longer than the block"));
  }
}

TEST(Table, KeysThatShareMuchCannotTakeMemoryWithoutEnd) {
  const std::string long_key(size_t{1} << 20, 'k');
  std::string block = entry(0, long_key, "");
  std::string last(1, '\0');
  for (int i = 0; i < 255; ++i) {
    last[0] = static_cast<char>(i);
    block += entry(long_key.size(), last, "");
  }
  EXPECT_THAT(table_error(table_of(
                  block, entry(0, std::string("l"), handle(0, block.size() + kOneRestart.size())))),
              HasSubstr("than its size allows"));
}

TEST(Table, KeysOutOfOrderAreRefused) {
  const std::string block = entry(0, "b", "1") + entry(0, "a", "2");
  EXPECT_THAT(table_error(table_of(block, entry(0, "c", handle(0, block.size() + 8)))),
              HasSubstr("not in order"));
}

TEST(Table, CompressedBlocksAreSaidToBeUnknown) {
  const std::string block = entry(0, "a", "1");
  const std::string table = table_of(block, entry(0, "b", handle(0, block.size() + 8)), 1);
  EXPECT_THROW(parse_table(table, "ckpt.index"), UnimplementedError);
}

}  // namespace
}  // namespace cohort::internal
