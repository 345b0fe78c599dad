#include "symbols.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string_view>
#include <vector>

namespace bench {
namespace {

// A file's own table of symbols: the dynamic one lacks functions of internal linkage.
class SymbolTable {
 public:
  explicit SymbolTable(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    if (bytes_.size() < sizeof(Elf64_Ehdr) || !std::string_view(bytes_).starts_with(ELFMAG)) return;
    const auto* header = at<Elf64_Ehdr>(0);
    const auto section = [&](size_t i) {
      return at<Elf64_Shdr>(header->e_shoff + i * sizeof(Elf64_Shdr));
    };
    for (size_t i = 0; i < header->e_shnum; ++i) {
      if (section(i)->sh_type != SHT_SYMTAB) continue;
      const char* names = at<char>(section(section(i)->sh_link)->sh_offset);
      const auto* symbols = at<Elf64_Sym>(section(i)->sh_offset);
      for (size_t k = 0; k < section(i)->sh_size / sizeof(Elf64_Sym); ++k) {
        if (ELF64_ST_TYPE(symbols[k].st_info) != STT_FUNC || symbols[k].st_value == 0) continue;
        functions_.push_back({symbols[k].st_value, symbols[k].st_size, names + symbols[k].st_name});
      }
    }
    std::sort(functions_.begin(), functions_.end(),
              [](const Function& a, const Function& b) { return a.begin < b.begin; });
  }

  // nullptr where no function is there.
  const char* find(uintptr_t offset) const {
    auto after = std::upper_bound(
        functions_.begin(), functions_.end(), offset,
        [](uintptr_t value, const Function& function) { return value < function.begin; });
    if (after == functions_.begin()) return nullptr;
    const Function& found = *std::prev(after);
    return offset < found.begin + found.size ? found.name : nullptr;
  }

 private:
  struct Function {
    uintptr_t begin;
    uintptr_t size;
    const char* name;  // into bytes_
  };

  template <class T>
  const T* at(size_t offset) const {
    return reinterpret_cast<const T*>(bytes_.data() + offset);
  }

  std::string bytes_;
  std::vector<Function> functions_;
};

std::string demangled(const char* name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = status == 0 ? text : name;
  std::free(text);
  return result;
}

}  // namespace

Symbol symbol_at(void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return {"unknown", nullptr, "", ""};
  const std::string path = info.dli_fname;
  const char* name = info.dli_sname;
  if (name == nullptr) {
    static std::map<std::string, SymbolTable> tables;
    // The base of a program that is not position-independent is part of its addresses; there are
    // none among ours.
    const auto offset =
        static_cast<uintptr_t>(static_cast<char*>(address) - static_cast<char*>(info.dli_fbase));
    name = tables.try_emplace(path, path).first->second.find(offset);
  }
  if (name == nullptr) name = "";
  return {path.substr(path.rfind('/') + 1), info.dli_fbase, name, demangled(name)};
}

}  // namespace bench
