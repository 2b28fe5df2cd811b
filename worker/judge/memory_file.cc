#include "worker/judge/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "common/wire/channel.h"

namespace grove::judge {
namespace {

class MemoryFile : public SharedBlock {
 public:
  explicit MemoryFile(std::size_t bytes) : bytes_(bytes) {
    fd_ = wire::UniqueFd(::memfd_create("grove", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fd_.valid()) throw std::system_error(errno, std::generic_category(), "memfd_create");
    if (::ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0) {
      throw std::system_error(errno, std::generic_category(), "ftruncate of shared memory");
    }
    // A candidate that could shrink the file would end the judge with SIGBUS.
    if (::fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
      throw std::system_error(errno, std::generic_category(), "sealing shared memory");
    }
    // Memory is taken now: running out of it is an error here and would be a SIGBUS later.
    if (int error = ::posix_fallocate(fd_.get(), 0, static_cast<off_t>(bytes)); error != 0) {
      throw std::system_error(error, std::generic_category(),
                              "taking " + std::to_string(bytes) + " bytes of shared memory");
    }
    void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_.get(), 0);
    if (at == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap of shared memory");
    data_ = static_cast<char*>(at);
  }
  ~MemoryFile() override { ::munmap(data_, bytes_); }
  char* data() override { return data_; }
  std::size_t bytes() const override { return bytes_; }
  int fd() const override { return fd_.get(); }

 private:
  wire::UniqueFd fd_;
  char* data_ = nullptr;
  std::size_t bytes_;
};

}  // namespace

std::unique_ptr<SharedBlock> MakeMemoryFile(std::size_t bytes) { return std::make_unique<MemoryFile>(bytes); }

}  // namespace grove::judge
