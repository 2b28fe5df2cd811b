#include "clients/cli/audit_corpus.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <utility>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/arguments.h"
#include "clients/cli/input.h"
#include "clients/cli/suggest.h"

namespace grove::cli {

const std::vector<std::string> kAuditClasses = {"timing",  "replay", "semantics", "fake",
                                                "harness", "build",  "host",      "controls"};

namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxManifestBytes = 64 << 10;
constexpr int kMaxRepeat = 100;
const std::vector<std::string> kLayers = {"judge", "isolation", "measurement", "floor", "policy", "host", "task"};

// Reads one table; the first thing that is wrong is kept with its line.
class Reader {
 public:
  Reader(const toml::table& table, std::string path, std::string prefix = "")
      : table_(table), path_(std::move(path)), prefix_(std::move(prefix)) {}

  void Text(const char* key, std::string* out) {
    Take(
        key,
        [&](const toml::node& node) {
          if (const auto* value = node.as_string()) return *out = value->get(), true;
          return false;
        },
        "a text");
  }
  void Bool(const char* key, bool* out) {
    Take(
        key,
        [&](const toml::node& node) {
          if (const auto* value = node.as_boolean()) return *out = value->get(), true;
          return false;
        },
        "true or false");
  }
  void Real(const char* key, double* out) {
    Take(
        key,
        [&](const toml::node& node) {
          if (!node.is_number()) return false;
          *out = *node.value<double>();
          return *out >= 0;
        },
        "a number of 0 or more");
  }
  void Count(const char* key, int low, int high, int* out) {
    Take(
        key,
        [&](const toml::node& node) {
          const auto* value = node.as_integer();
          if (value == nullptr || value->get() < low || value->get() > high) return false;
          return *out = static_cast<int>(value->get()), true;
        },
        absl::StrCat("a whole number from ", low, " to ", high));
  }
  void Words(const char* key, std::vector<std::string>* out) {
    Take(
        key,
        [&](const toml::node& node) {
          const auto* list = node.as_array();
          if (list == nullptr) return false;
          for (const toml::node& item : *list) {
            if (!item.is_string()) return false;
            out->push_back(item.as_string()->get());
          }
          return true;
        },
        "a list of texts");
  }
  // A word of a fixed set, given to `set` as its position.
  void Word(const char* key, const std::vector<std::string>& words, const std::function<void(size_t)>& set) {
    std::string text;
    Text(key, &text);
    if (text.empty()) return;
    const auto found = std::find(words.begin(), words.end(), text);
    if (found == words.end()) return Fail(Line(key), key, "is '", text, "'; it is one of ", absl::StrJoin(words, ", "));
    set(static_cast<size_t>(found - words.begin()));
  }
  const toml::table* Table(const char* key) {
    const toml::table* found = nullptr;
    Take(
        key, [&](const toml::node& node) { return (found = node.as_table()) != nullptr; }, "a table");
    return found;
  }
  template <typename... Parts>
  void Fail(size_t line, absl::string_view key, const Parts&... parts) {
    if (status_.ok()) {
      status_ = absl::InvalidArgumentError(absl::StrCat(path_, ":", line, ": ", prefix_, key, " ", parts...));
    }
  }
  void Absorb(const absl::Status& status) {
    if (status_.ok()) status_ = status;
  }
  void Absorb(const char* key, const absl::Status& status) {
    if (!status.ok()) Fail(Line(key), key, status.message());
  }
  size_t Line(const char* key) const {
    const toml::node* node = table_.get(key);
    return node == nullptr ? table_.source().begin.line : node->source().begin.line;
  }
  // Everything that was not asked for is an error, and the likely cause of what is missing.
  absl::Status Finish() {
    const absl::Status before = std::exchange(status_, absl::OkStatus());
    for (auto&& [key, node] : table_) {
      const std::string name(key.str());
      if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
      const std::string near = ClosestName(name, known_);
      Fail(key.source().begin.line, name, "is not known",
           near.empty() ? "" : absl::StrCat("; did you mean '", near, "'?"));
    }
    return status_.ok() ? before : status_;
  }
  const std::string& path() const { return path_; }

 private:
  template <typename Set>
  void Take(const char* key, const Set& set, const std::string& wanted) {
    known_.push_back(key);
    const toml::node* node = table_.get(key);
    if (node != nullptr && !set(*node)) Fail(node->source().begin.line, key, "must be ", wanted);
  }

  const toml::table& table_;
  std::string path_, prefix_;
  std::vector<std::string> known_;
  absl::Status status_;
};

void ReadExpectation(Reader* reader, AuditExpectation* expect) {
  std::vector<std::string> names;
  reader->Words("expect", &names);
  if (!names.empty()) expect->verdicts.clear();
  for (const std::string& name : names) {
    v1::Verdict verdict;
    if (!v1::Verdict_Parse(absl::StrCat("VERDICT_", name), &verdict) || verdict == v1::VERDICT_UNSPECIFIED) {
      reader->Fail(reader->Line("expect"), "expect", "has '", name, "', which is no verdict");
      return;
    }
    expect->verdicts.push_back(verdict);
  }
  reader->Bool("gains_nothing", &expect->gains_nothing);
  reader->Real("max_gain", &expect->max_gain);
  reader->Real("min_speedup", &expect->min_speedup);
  reader->Real("max_speedup", &expect->max_speedup);
}

struct Devices {
  bool cpu = true, cuda = true;
};
void ReadDevices(Reader* reader, Devices* devices) {
  std::vector<std::string> names;
  reader->Words("devices", &names);
  if (names.empty()) return;
  *devices = {false, false};
  for (const std::string& name : names) {
    if (name == "cpu") {
      devices->cpu = true;
    } else if (name == "cuda") {
      devices->cuda = true;
    } else {
      reader->Fail(reader->Line("devices"), "devices", "has '", name, "'; it is cpu or cuda");
    }
  }
}

void ReadOptions(Reader* reader, v1::EvaluationOptions* options, bool* timing) {
  int trials = 2, samples = 0;
  reader->Count("trials", 1, 100, &trials);
  options->set_trials(trials);
  reader->Bool("timing", timing);
  std::string tolerance = "scaled", baseline = "eager";
  reader->Text("tolerance", &tolerance);
  auto rule = ParseTolerance(tolerance);
  reader->Absorb("tolerance", rule.status());
  if (rule.ok()) *options->mutable_tolerance() = *rule;
  reader->Text("baseline", &baseline);
  auto baselines = ParseBaselines(baseline);
  reader->Absorb("baseline", baselines.status());
  if (baselines.ok()) options->add_baselines(baselines->front());
  reader->Word("precision", {"same", "reduced"}, [&](size_t i) {
    options->set_precision(i == 0 ? v1::PRECISION_POLICY_SAME : v1::PRECISION_POLICY_REDUCED);
  });
  double precision_tolerance = 0, min_time = 0.05, max_time = 1;
  reader->Real("precision_tolerance", &precision_tolerance);
  options->set_precision_tolerance(precision_tolerance);
  reader->Word("work", WorkPolicyNames(),
               [&](size_t i) { options->set_work(static_cast<v1::WorkPolicy>(v1::WORK_POLICY_ANYTHING + i)); });
  reader->Word("cache", {"cold", "warm"},
               [&](size_t i) { options->set_cache(static_cast<v1::CachePolicy>(v1::CACHE_POLICY_COLD + i)); });
  reader->Real("min_time", &min_time);
  reader->Real("max_time", &max_time);
  options->set_min_time_seconds(min_time);
  options->set_max_time_seconds(max_time);
  reader->Count("samples", 1, 100'000, &samples);
  options->set_max_samples(samples);
  bool flag = false;
  reader->Bool("only_given_inputs", &flag);
  options->set_only_given_inputs(flag);
  flag = false;
  reader->Bool("profile", &flag);
  options->set_profile(flag);
  std::vector<std::string> distributions;
  reader->Words("distributions", &distributions);
  for (const std::string& name : distributions) {
    v1::InputDistribution distribution;
    if (!v1::InputDistribution_Parse(absl::StrCat("INPUT_DISTRIBUTION_", absl::AsciiStrToUpper(name)), &distribution)) {
      reader->Fail(reader->Line("distributions"), "distributions", "has '", name, "', which is none");
      return;
    }
    options->add_distributions(distribution);
  }
}

bool IsAttempt(const std::string& name) {
  if (absl::StartsWith(name, "problem")) return false;
  return absl::EndsWith(name, ".cpp") || absl::EndsWith(name, ".cu") || absl::EndsWith(name, ".py");
}

}  // namespace

const AuditCase* AuditCorpus::Find(absl::string_view id) const {
  for (const AuditCase& one : cases) {
    if (one.id == id) return &one;
  }
  return nullptr;
}

absl::StatusOr<AuditCase> ParseAuditManifest(absl::string_view text, const std::string& path, const std::string& group,
                                             const AuditSources& sources) {
  toml::parse_result parsed = toml::parse(std::string_view(text.data(), text.size()), path);
  if (!parsed) {
    const std::string_view what = parsed.error().description();
    return absl::InvalidArgumentError(
        absl::StrCat(path, ":", parsed.error().source().begin.line, ": ", absl::string_view(what.data(), what.size())));
  }
  AuditCase one;
  one.group = group;
  one.folder = fs::path(path).parent_path().string();
  Reader reader(parsed.table(), path);
  reader.Text("id", &one.id);
  reader.Text("title", &one.title);
  reader.Text("what", &one.what);
  reader.Text("source", &one.source);
  reader.Text("layer", &one.layer);
  for (const auto& [key, value] : {std::pair<const char*, const std::string*>{"id", &one.id},
                                   {"title", &one.title},
                                   {"what", &one.what},
                                   {"source", &one.source},
                                   {"layer", &one.layer}}) {
    if (value->empty()) reader.Fail(1, key, "is missing");
  }
  if (one.title.size() > 100 || absl::StrContains(one.title, '\n')) {
    reader.Fail(reader.Line("title"), "title", "is one line of at most 100 characters");
  }
  reader.Word("layer", kLayers, [](size_t) {});
  if (!absl::StartsWith(fs::path(one.folder).filename().string(), one.id + "-")) {
    reader.Fail(reader.Line("id"), "id", "is '", one.id, "', but the folder's name does not begin with '", one.id,
                "-'");
  }

  std::string problem, problem_cuda;
  reader.Text("problem", &problem);
  reader.Text("problem_cuda", &problem_cuda);
  const auto use = [&](const char* key, const std::string& name, v1::Problem* out) {
    const auto found = sources.problems.find(name);
    if (found == sources.problems.end()) {
      return reader.Fail(reader.Line(key), key, "is '", name,
                         "'; there is no such problem in problems/ (as NAME) or in the case's folder (as ./FILE)");
    }
    *out = found->second;
  };
  use("problem", problem, &one.problem);
  use(problem_cuda.empty() ? "problem" : "problem_cuda", problem_cuda.empty() ? problem : problem_cuda,
      &one.problem_cuda);

  AuditExpectation expect;
  if (one.control()) expect.verdicts = {v1::VERDICT_CORRECT};
  ReadExpectation(&reader, &expect);
  Devices devices;
  ReadDevices(&reader, &devices);
  reader.Text("twin", &one.twin);
  reader.Text("then", &one.then);
  reader.Bool("sequence", &one.sequence);
  reader.Bool("leaves_nothing", &one.leaves_nothing);
  reader.Count("repeat", 1, kMaxRepeat, &one.repeat);
  reader.Text("known_miss", &one.known_miss);
  std::vector<std::string> build_flags;
  reader.Words("build_flags", &build_flags);

  bool timing = false;
  const toml::table empty;
  const toml::table* options = reader.Table("options");
  Reader option_reader(options == nullptr ? empty : *options, path, "options.");
  ReadOptions(&option_reader, &one.options, &timing);
  reader.Absorb(option_reader.Finish());
  if (const toml::table* limits = reader.Table("limits"); limits != nullptr) {
    for (auto&& [key, node] : *limits) {
      const std::string name(key.str());
      if (!node.is_string()) {
        reader.Fail(key.source().begin.line, name, "must be a text, as --limit takes it");
        continue;
      }
      const absl::Status applied =
          ApplyLimit(absl::StrCat(name, "=", node.as_string()->get()), one.options.mutable_limits());
      if (!applied.ok()) reader.Fail(key.source().begin.line, "limits", applied.message());
    }
  }

  std::set<std::string> unnamed;
  const toml::table* overrides = reader.Table("files");
  if (overrides != nullptr) {
    for (auto&& [key, node] : *overrides) unnamed.insert(std::string(key.str()));
  }
  for (const auto& [name, source] : sources.files) {
    AuditFile file;
    file.name = name;
    file.expect = expect;
    Devices allowed = devices;
    if (overrides != nullptr && unnamed.erase(name) > 0) {
      const toml::table* table = overrides->get(name)->as_table();
      Reader file_reader(table == nullptr ? empty : *table, path, absl::StrCat("files.", name, "."));
      ReadExpectation(&file_reader, &file.expect);
      ReadDevices(&file_reader, &allowed);
      reader.Absorb(file_reader.Finish());
    }
    file.candidate.set_name(absl::StrCat(one.id, "/", name));
    file.candidate.set_source(source);
    for (const std::string& flag : build_flags) file.candidate.add_build_flags(flag);
    const bool cpp = absl::EndsWith(name, ".cpp"), cu = absl::EndsWith(name, ".cu");
    file.candidate.set_format(cpp  ? v1::CANDIDATE_FORMAT_CPP
                              : cu ? v1::CANDIDATE_FORMAT_CUDA
                                   : v1::CANDIDATE_FORMAT_KERNELBENCH);
    file.on_cpu = allowed.cpu && !cu;
    file.on_cuda = allowed.cuda && !cpp;
    if (file.expect.verdicts.empty() && !file.expect.gains_nothing) {
      reader.Fail(1, "expect", "is missing: the verdicts by which ", name, " is stopped, or gains_nothing");
    }
    if (file.expect.gains_nothing && one.twin.empty()) {
      reader.Fail(1, "gains_nothing", "needs a twin to compare with");
    }
    timing = timing || file.expect.NeedsTiming();
    one.files.push_back(std::move(file));
  }
  if (!unnamed.empty()) reader.Fail(1, "files", "names ", *unnamed.begin(), ", which is not there");
  if (one.files.empty()) reader.Fail(1, "the folder", "holds no .cpp, .cu or .py file");
  one.options.set_skip_timing(!timing);
  if (!timing) one.options.clear_baselines();
  if (absl::Status status = reader.Finish(); !status.ok()) return status;
  return one;
}

absl::StatusOr<AuditCorpus> LoadAuditCorpus(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return absl::NotFoundError(absl::StrCat("there is no corpus in ", folder, "; name its folder with --corpus"));
  }
  std::map<std::string, v1::Problem> shared;
  for (const auto& entry : fs::directory_iterator(fs::path(folder) / "problems", error)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".py" && extension != ".toml") continue;
    auto problem = ReadProblem(entry.path().string());
    if (!problem.ok()) return problem.status();
    shared[entry.path().stem().string()] = *std::move(problem);
  }
  AuditCorpus corpus;
  std::map<std::string, std::string> seen;
  for (const std::string& group : kAuditClasses) {
    std::vector<fs::path> folders;
    for (const auto& entry : fs::directory_iterator(fs::path(folder) / group, error)) {
      if (entry.is_directory(error)) folders.push_back(entry.path());
    }
    std::sort(folders.begin(), folders.end());
    for (const fs::path& at : folders) {
      const std::string manifest = (at / "manifest.toml").string();
      auto text = ReadTextFile(manifest, kMaxManifestBytes, "manifest");
      if (!text.ok()) return text.status();
      AuditSources sources;
      sources.problems = shared;
      for (const auto& entry : fs::directory_iterator(at, error)) {
        const std::string name = entry.path().filename().string();
        if (name == "manifest.toml") continue;
        if (absl::StartsWith(name, "problem")) {
          auto problem = ReadProblem(entry.path().string());
          if (!problem.ok()) return problem.status();
          sources.problems["./" + name] = *std::move(problem);
        } else if (IsAttempt(name)) {
          auto source = ReadTextFile(entry.path().string(), kMaxSourceBytes, "candidate");
          if (!source.ok()) return source.status();
          sources.files[name] = *std::move(source);
        }
      }
      auto one = ParseAuditManifest(*text, manifest, group, sources);
      if (!one.ok()) return one.status();
      if (const auto [at_first, fresh] = seen.try_emplace(one->id, manifest); !fresh) {
        return absl::InvalidArgumentError(absl::StrCat(manifest, ": id ", one->id, " is taken by ", at_first->second));
      }
      corpus.cases.push_back(*std::move(one));
    }
  }
  if (corpus.cases.empty()) {
    return absl::NotFoundError(absl::StrCat(folder, " holds no cases (", absl::StrJoin(kAuditClasses, "/, "), "/)"));
  }
  for (const AuditCase& one : corpus.cases) {
    for (const std::string& id : {one.twin, one.then}) {
      if (id.empty()) continue;
      const AuditCase* control = corpus.Find(id);
      if (control == nullptr || !control->control()) {
        return absl::InvalidArgumentError(
            absl::StrCat(one.folder, "/manifest.toml: ", id, " is not one of the controls"));
      }
    }
  }
  return corpus;
}

absl::StatusOr<std::string> FindAuditCorpus(const std::string& executable_dir) {
  std::error_code error;
  const fs::path bin = fs::absolute(executable_dir, error).lexically_normal();
  const fs::path installed = (bin / "../share/grove/exploits").lexically_normal();
  if (fs::is_directory(installed, error)) return installed.string();
  // A build folder within the source tree, a few levels down at most.
  fs::path up = bin;
  for (int level = 0; level < 5 && up.has_relative_path(); ++level) {
    up = up.parent_path();
    const fs::path source = up / "tests/testcases/exploits";
    if (fs::is_directory(source, error)) return source.string();
  }
  return absl::NotFoundError(absl::StrCat("the audit corpus is not there (looked in ", installed.string(),
                                          " and above ", bin.string(), "); name its folder with --corpus"));
}

}  // namespace grove::cli
