#include "cohort/keras/datasets/download.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/files/posix_io.h"
#include "cohort/core/host/unique_fd.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

class Md5 {
 public:
  Md5() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_md5(), nullptr) != 1) {
      throw UnimplementedError(
          "libcrypto offers no MD5 here (FIPS mode?), so that downloads cannot "
          "be verified");
    }
  }
  void add(const void* bytes, size_t size) { EVP_DigestUpdate(context_.get(), bytes, size); }
  std::string hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
    unsigned int size = 0;
    EVP_DigestFinal_ex(context_.get(), digest.data(), &size);
    std::string text;
    for (unsigned int i = 0; i < size; ++i) {
      text += internal::hex_digits(digest[i], 2);
    }
    return text;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
};

// A new file beside the target; removed unless it is renamed to it.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& target) : path_(target + ".partial.XXXXXX") {
    std::error_code ignored;  // mkstemp reports what matters
    std::filesystem::create_directories(std::filesystem::path(target).parent_path(), ignored);
    fd_ = UniqueFd(::mkostemp(path_.data(), O_CLOEXEC));
    if (!fd_.valid()) {
      throw PermissionDeniedError(
          str("cannot make a file beside ", target, ": ", errno_text(errno)));
    }
  }
  ~TemporaryFile() {
    if (!renamed_) ::unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  // Returns an errno, 0 for success.
  int write(std::string_view bytes) { return write_all(fd_.get(), bytes).error_number; }

  void rename_to(const std::string& target) {
    const bool synced = ::fsync(fd_.get()) == 0;
    const bool closed = ::close(fd_.release()) == 0;
    renamed_ = synced && closed && ::rename(path_.c_str(), target.c_str()) == 0;
    if (!renamed_) {
      throw ResourceExhaustedError(str("cannot complete ", target, ": ", errno_text(errno)));
    }
  }

 private:
  std::string path_;
  UniqueFd fd_;
  bool renamed_ = false;
};

// One file's way here.
struct Download {
  TemporaryFile file;
  Md5 md5;
  int64_t max_bytes = 0;
  int64_t num_bytes = 0;
  bool too_large = false;
  int write_errno = 0;

  // libcurl's callback: a number other than `size` ends the transfer. It must not throw.
  static size_t receive(char* bytes, size_t, size_t size, void* download) {
    auto& self = *static_cast<Download*>(download);
    self.num_bytes += static_cast<int64_t>(size);
    self.too_large = self.num_bytes > self.max_bytes;
    if (self.too_large) return 0;
    self.write_errno = self.file.write({bytes, size});
    if (self.write_errno != 0) return 0;
    self.md5.add(bytes, size);
    return size;
  }
};

[[noreturn]] void throw_transfer_error(CURLcode code, const std::string& detail,
                                       const Download& download, const DownloadOptions& options) {
  const std::string start =
      str("downloading ", options.url, " failed after ", download.num_bytes, " bytes: ");
  if (download.write_errno != 0) {
    throw ResourceExhaustedError(
        str(start, "cannot write beside ", options.target, ": ", errno_text(download.write_errno)));
  }
  if (download.too_large) {
    throw DataLossError(str(start, "it is larger than ", options.max_bytes, " bytes"));
  }
  const std::string reason = detail.empty() ? curl_easy_strerror(code) : detail;
  if (code == CURLE_PARTIAL_FILE) throw DataLossError(start + "partial: " + reason);
  throw UnavailableError(start + reason);
}

}  // namespace

void download(const DownloadOptions& options) {
  Download under_way{
      .file = TemporaryFile(options.target), .md5 = {}, .max_bytes = options.max_bytes};
  const std::unique_ptr<CURL, void (*)(CURL*)> curl(curl_easy_init(), curl_easy_cleanup);
  if (!curl) throw ResourceExhaustedError("libcurl cannot start a transfer");
  std::array<char, CURL_ERROR_SIZE> detail{};
  const auto set = [&](CURLoption option, auto value) {
    curl_easy_setopt(curl.get(), option, value);
  };
  set(CURLOPT_URL, options.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https,file");
  set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, 5L);
  set(CURLOPT_FAILONERROR, 1L);
  set(CURLOPT_NOSIGNAL, 1L);  // no SIGALRM in a program of many threads
  set(CURLOPT_ERRORBUFFER, detail.data());
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect_timeout.count()));
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(options.timeout.count()));
  set(CURLOPT_LOW_SPEED_LIMIT, 1000L);
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(options.stall_timeout.count()));
  set(CURLOPT_WRITEFUNCTION, &Download::receive);
  set(CURLOPT_WRITEDATA, &under_way);
  const CURLcode code = curl_easy_perform(curl.get());
  if (code != CURLE_OK) throw_transfer_error(code, detail.data(), under_way, options);
  if (const std::string md5 = under_way.md5.hex(); md5 != options.md5) {
    throw DataLossError(str(options.url, " has the MD5 ", md5, " instead of ", options.md5,
                            ": it was changed on the way, or is not the file that it should be"));
  }
  under_way.file.rename_to(options.target);
}

std::string md5_of(const std::string& bytes) {
  Md5 md5;
  md5.add(bytes.data(), bytes.size());
  return md5.hex();
}

}  // namespace cohort::internal
