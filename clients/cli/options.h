// What the command line said, after parsing and before its values are looked at.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace grove::cli {

struct GlobalOptions {
  std::string coordinator, config, data;
  std::string tls_cert, tls_key, tls_ca;
  bool insecure = false;
  bool allow_weak_sandbox = false;  // for a worker that this command starts
  double reattach = -1;             // seconds; negative = the default
  bool json = false, quiet = false, no_color = false;
};

struct EvaluationFlags {
  std::string device;
  int trials = 0;
  std::string tolerance;  // empty = the problem's own, else scaled
  std::string precision;  // empty = same
  std::string work;       // empty = anything
  std::vector<std::string> distributions;
  bool only_given_inputs = false;
  std::string baseline = "eager";
  std::string cache;       // empty = cold
  bool no_timing = false;  // `eval`
  bool profile = false;    // `eval`, `search`
  std::vector<std::string> limits;
  double min_time = 0, max_time = 0;
  int samples = 0;
  bool keep_samples = false;
  bool reuse = false;
};

struct EvalCommand {
  std::string problem;
  std::vector<std::string> candidates;
  std::vector<std::string> build_flags;
  EvaluationFlags evaluation;
  std::string name;
  std::string key;  // idempotency key; empty = a new one
  bool detach = false;
};

// How a coordinator that this command starts reaches a model: handed on to it (docs/generators.md).
struct ModelFlags {
  std::string base_url, model, api_key_file, api_key_env;
  int max_output_tokens = 0;
  bool no_job_urls = false, plain_http = false;

  std::vector<std::string> CoordinatorFlags() const {
    std::vector<std::string> flags;
    const auto add = [&](const char* name, const std::string& value) {
      if (!value.empty()) flags.insert(flags.end(), {name, value});
    };
    add("--llm-base-url", base_url);
    add("--llm-model", model);
    add("--llm-api-key-file", api_key_file);
    add("--llm-api-key-env", api_key_env);
    if (max_output_tokens > 0) add("--llm-max-output-tokens", std::to_string(max_output_tokens));
    if (no_job_urls) flags.push_back("--llm-no-job-urls");
    if (plain_http) flags.push_back("--llm-plain-http");
    return flags;
  }
};

struct CompareCommand {
  std::string problem;
  std::vector<std::string> candidates;  // the first is what the others are compared with
  std::vector<std::string> build_flags, rival_flags, candidate_flags;
  int replicas = 0;  // 0 = the default
  EvaluationFlags evaluation;
  std::string name;
  std::string key;
  bool detach = false;
};

struct CalibrateCommand {
  std::string device = "auto";
  std::string worker;
  int runs = 0;
  double max_seconds = 0;
  std::string key;
  bool detach = false;
};

struct ProblemCommand {
  std::string problem;
  std::string device = "auto";
  std::string key;
  bool detach = false;
};

struct SearchCommand {
  std::string problem;
  std::string generator = "catalogue";
  std::string model, base_url;
  double temperature = 0;
  int rounds = 0, ideas = 0, variants = 0, keep = 0, max_evaluations = 0, repairs = 0;
  bool repairs_given = false, explore_given = false;
  double explore = 0, max_seconds = 0;
  uint64_t seed = 0;
  bool no_bank = false, detach = false;
  std::string name, record;
  std::string key;  // idempotency key; empty = a new one
  EvaluationFlags evaluation;
  ModelFlags models;
};

struct UpCommand {
  std::string device = "auto";
  int workers = 0;  // 0 = one per GPU, one on a CPU
  std::string listen = "127.0.0.1:7433";
  std::string port_file;  // written (atomically) with the address once serving; empty = none
  std::string metrics_listen;
  ModelFlags models;
};

struct JobsCommand {
  int limit = 50;
  std::string state;
};

struct NodeCommand {  // any command that names one thing
  std::string id;
  std::string reason;
  int extra_rounds = 0, extra_evaluations = 0;  // resume
  std::string format = "text";                  // tree
  std::string output;                           // best
  uint64_t after = 0;                           // watch
  ModelFlags models;                            // resume
};

struct BankCommand {
  std::string operation, device, id, source, note;
};

struct AuditCommand {
  std::string device, corpus;
  std::vector<std::string> ids, classes;
  bool list = false;
};

struct CertsCommand {
  std::string dir, name;
  std::vector<std::string> hosts;
  int days = 0;
  bool force = false;
};

}  // namespace grove::cli
