#include "cohort/cluster/security/make_certificates.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>

#include "cohort/cluster/security/identity_uri.h"
#include "cohort/cluster/security/signer.h"
#include "cohort/core/error.h"
#include "cohort/core/files/posix_io.h"
#include "cohort/core/host/posix_error.h"
#include "cohort/core/host/unique_fd.h"
#include "cohort/core/text.h"
#include "cohort/core/text_stream.h"

namespace cohort::internal::security {
namespace {

constexpr char kAuthority[] = "ca";

std::string in_directory(const std::string& directory, const std::string& name) {
  return (std::filesystem::path(directory) / name).string();
}

std::string stem(const TaskId& task) { return str(task.job, "-", task.index); }

// The file appears whole and readable by its owner alone, in place of one that was there: a task
// that reads it again sees the old one or the new one.
void write_private(const std::string& path, const std::string& text) {
  const std::string unfinished = path + ".new";
  ::unlink(unfinished.c_str());
  UniqueFd file(
      ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) throw_errno(errno, "creating " + quoted(unfinished));
  if (const Transfer written = write_all(file.get(), text); written.error_number != 0) {
    throw_errno(written.error_number, "writing " + quoted(unfinished));
  }
  if (::fsync(file.get()) != 0) throw_errno(errno, "syncing " + quoted(unfinished));
  if (::rename(unfinished.c_str(), path.c_str()) != 0) {
    throw_errno(errno, "renaming to " + quoted(path));
  }
}

std::optional<std::string> read_if_there(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  TextStream text;
  text << file.rdbuf();
  return std::move(text).str();
}

// Throws an error that says what is wrong, and what to do about it.
[[noreturn]] void distrust(const std::string& path, std::string_view problem,
                           std::string_view advice) {
  throw FailedPreconditionError(
      str(quoted(path), " ", problem, ": certificates from there would prove nothing. ", advice));
}

// Makes the directory, or checks the one that is there. Anybody who can write to it could replace
// our authority by another one, or put other links in its place.
void make_directory(const std::string& given) {
  std::string path = given;
  while (path.size() > 1 && path.back() == '/') path.pop_back();  // "a/" would follow a link "a"
  if (::mkdir(path.c_str(), 0700) == 0) return;
  if (errno != EEXIST) throw_errno(errno, "creating " + quoted(path));
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) throw_errno(errno, "looking at " + quoted(path));
  if (!S_ISDIR(status.st_mode)) {
    distrust(path, S_ISLNK(status.st_mode) ? "is a link" : "is no directory",
             "Name a directory of your own, or one that is not there yet");
  }
  if (status.st_uid != ::geteuid()) {
    distrust(path, str("belongs to user ", status.st_uid, ", not to this one"),
             "Name a directory of your own, or one that is not there yet");
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    distrust(path, "can be written by others",
             str("Run `chmod go-w ", quoted(path),
                 "` if you know what is in it, or name one that is not there yet"));
  }
}

// The authority's key, if it is there and nobody else could have read it.
std::optional<std::string> read_authority_key(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return std::nullopt;
    throw_errno(errno, "looking at " + quoted(path));
  }
  constexpr std::string_view kAdvice = "Remove the directory and give all tasks new certificates";
  if (!S_ISREG(status.st_mode)) distrust(path, "is no file of its own", kAdvice);
  if (status.st_uid != ::geteuid()) {
    distrust(path, str("belongs to user ", status.st_uid, ", not to this one"), kAdvice);
  }
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    distrust(path, "can be read or written by others", kAdvice);
  }
  return read_if_there(path);
}

void check_request(const CertificateRequest& request) {
  if (!is_identity_name(request.cluster)) {
    throw InvalidArgumentError(str("a cluster cannot be called ", quoted(request.cluster),
                                   "; use letters, digits, '_', '-' and '.', at most 64"));
  }
  if (request.tasks.empty()) {
    throw InvalidArgumentError("certificates for no task; say how many workers there are");
  }
  for (const TaskId& task : request.tasks) {
    if (!is_identity_name(task.job) || task.index < 0) {
      throw InvalidArgumentError(str("there can be no task ", quoted(to_string(task))));
    }
  }
  if (request.lifetime <= std::chrono::hours(0) || request.lifetime > std::chrono::days(3660)) {
    throw InvalidArgumentError(str("certificates cannot be valid for ", request.lifetime.count(),
                                   " hours; give 1 hour to 10 years"));
  }
}

// The certificate authority of the directory, or a new one.
Signer authority_of(const CertificateRequest& request, MadeCertificates& made) {
  const std::string path = in_directory(request.directory, kAuthority);
  const std::optional<std::string> certificate = read_if_there(path + ".pem");
  const std::optional<std::string> key = read_authority_key(path + ".key");
  if (certificate && key) {
    made.new_authority = false;
    return Signer::from_pem(*certificate, *key, request.cluster, path + ".pem");
  }
  if (certificate || key) {
    throw FailedPreconditionError(
        str(quoted(path), certificate ? ".pem is there without its key " : ".key is there without ",
            certificate ? "ca.key" : "ca.pem",
            ". Restore it, or remove the directory and give all tasks new certificates"));
  }
  Signer signer = Signer::make(request.cluster);
  write_private(path + ".key", signer.key_pem());
  made.files.push_back(path + ".key");
  write_private(path + ".pem", signer.certificate_pem());
  made.files.push_back(path + ".pem");
  return signer;
}

SignedCertificate sign(const Signer& signer, const CertificateRequest& request,
                       const TaskId& task) {
  std::vector<std::string> hosts = request.hosts;
  hosts.push_back(identity_host({request.cluster, task}));
  return signer.sign({.uri = identity_uri({request.cluster, task}),
                      .common_name = to_string(task),
                      .hosts = std::move(hosts),
                      .lifetime = request.lifetime});
}

}  // namespace

MadeCertificates make_certificates(const CertificateRequest& request) {
  check_request(request);
  make_directory(request.directory);
  MadeCertificates made;
  const Signer signer = authority_of(request, made);
  std::vector<TaskId> tasks = request.tasks;
  if (request.with_operator) tasks.push_back({kOperatorJob, 0});
  for (const TaskId& task : tasks) {
    const SignedCertificate signed_one = sign(signer, request, task);
    const std::string path = in_directory(request.directory, stem(task));
    write_private(path + ".key", signed_one.key_pem);
    write_private(path + ".pem", signed_one.certificate_pem);
    made.files.push_back(path + ".key");
    made.files.push_back(path + ".pem");
  }
  return made;
}

CertificateTexts make_certificate_texts(const std::string& cluster,
                                        const std::vector<TaskId>& tasks) {
  const CertificateRequest request{.cluster = cluster, .tasks = tasks, .directory = ""};
  check_request(request);
  const Signer signer = Signer::make(cluster);
  CertificateTexts made{.ca_pem = signer.certificate_pem(), .tasks = {}};
  for (const TaskId& task : tasks) {
    SignedCertificate signed_one = sign(signer, request, task);
    made.tasks.push_back(
        {task, std::move(signed_one.certificate_pem), std::move(signed_one.key_pem)});
  }
  return made;
}

distribute::Credentials credentials_in(const std::string& directory, const TaskId& task) {
  return {.certificate_file = in_directory(directory, stem(task) + ".pem"),
          .key_file = in_directory(directory, stem(task) + ".key"),
          .ca_file = in_directory(directory, std::string(kAuthority) + ".pem")};
}

}  // namespace cohort::internal::security
