#include "worker/device/ncu.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/files.h"
#include "worker/device/toolchain.h"

namespace grove::device {
namespace {

constexpr char kInstalled[] = "/opt/nvidia/nsight-compute";

std::vector<std::string> Places() {
  std::vector<std::string> places = {"ncu"};
  std::vector<std::string> versions;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(kInstalled, error)) {
    versions.push_back(entry.path().filename().string());
  }
  std::sort(versions.begin(), versions.end(),
            [](const std::string& a, const std::string& b) { return OlderVersion(b, a); });
  for (const std::string& version : versions) places.push_back(absl::StrCat(kInstalled, "/", version, "/ncu"));
  if (const char* home = getenv("CUDA_HOME"); home != nullptr && *home != 0) {
    places.push_back(absl::StrCat(home, "/bin/ncu"));
  }
  places.push_back("/usr/local/cuda/bin/ncu");
  return places;
}

// The number in its line "Version 2025.3.1.0 (build 36398880) (public-release)".
std::string VersionOf(absl::string_view text) {
  const size_t at = text.find("Version ");
  if (at == absl::string_view::npos) return "";
  text.remove_prefix(at + 8);
  return std::string(text.substr(0, std::min<size_t>(text.find_first_not_of("0123456789."), 40)));
}

// What it reads: no more of the machine than itself, its installation and the toolkit that it belongs to.
std::vector<std::string> FoldersOf(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<std::string> folders = {kInstalled, path};
  const fs::path real = fs::canonical(path, error);
  if (!error) {
    const fs::path folder = real.parent_path();
    folders.push_back(real.string());
    if (fs::exists(folder / "target", error)) folders.push_back(folder.string());
    // There it is a script that looks for the program beside the toolkit, or where packages put it.
    const fs::path toolkit = folder.parent_path();
    if (fs::exists(folder / "nvcc", error) &&
        (fs::exists(toolkit / "nvvm", error) || fs::exists(toolkit / "version.json", error))) {
      folders.push_back(toolkit.string());
    }
  }
  folders.erase(std::remove_if(folders.begin(), folders.end(),
                               [](const std::string& one) {
                                 return one == "/" || one == "/usr" || absl::StartsWith(one, "/usr/") ||
                                        access(one.c_str(), F_OK) != 0;
                               }),
                folders.end());
  return folders;
}

}  // namespace

bool OlderVersion(const std::string& one, const std::string& other) {
  const std::vector<std::string> a = absl::StrSplit(one, '.'), b = absl::StrSplit(other, '.');
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    int64_t x = -1, y = -1;
    if (i < a.size() && !absl::SimpleAtoi(a[i], &x)) x = -1;
    if (i < b.size() && !absl::SimpleAtoi(b[i], &y)) y = -1;
    if (x != y) return x < y;
  }
  return false;
}

absl::StatusOr<Ncu> FindNcu(const std::string& name) {
  const std::vector<std::string> places = name.empty() ? Places() : std::vector<std::string>{name};
  std::string broken;
  for (const std::string& place : places) {
    const std::string path = FindOnPath(place);
    if (path.empty()) continue;
    auto said = RunTool({path, "--version"}, {"PATH=/usr/local/cuda/bin:/usr/bin:/bin", "HOME=/tmp", "LC_ALL=C"},
                        absl::Seconds(30));
    const std::string version = said.ok() && said->exit_code == 0 ? VersionOf(said->out) : "";
    if (version.empty()) {
      broken = absl::StrCat(path, " does not say its version");
      continue;
    }
    Ncu ncu;
    ncu.path = path;
    ncu.version = version;
    ncu.folders = FoldersOf(path);
    return ncu;
  }
  return absl::NotFoundError(absl::StrCat(
      "Nsight Compute (ncu) was not found",
      !broken.empty() ? absl::StrCat(": ", broken)
      : name.empty()  ? ""
                      : absl::StrCat(": ", name, " is not there"),
      "; install it (it comes with the CUDA toolkit: cuda-nsight-compute) or start the worker with --ncu PATH"));
}

std::string CountersRefused() {
  const auto params = ReadFile("/proc/driver/nvidia/params", 64 << 10);
  if (!params.ok() || !absl::StrContains(*params, "RmProfilingAdminOnly: 1")) return "";
  return "the driver lets administrators alone read the GPU's counters, and in a sandbox nobody is one; load the "
         "nvidia module with NVreg_RestrictProfilingToAdminUsers=0 (a line \"options nvidia "
         "NVreg_RestrictProfilingToAdminUsers=0\" in "
         "/etc/modprobe.d, then restart)";
}

}  // namespace grove::device
