#include "clients/cli/app.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "clients/cli/arguments.h"
#include "clients/cli/commands.h"
#include "clients/cli/console.h"
#include "clients/cli/suggest.h"
#include "common/measure/replicas.h"

namespace grove::cli {
namespace {

using Action = std::function<ExitCode(const Context&)>;

// Everything the flags write to; lives as long as the App.
struct Values {
  GlobalOptions global;
  UpCommand up;
  SearchCommand search;
  EvalCommand eval;
  CompareCommand compare;
  CalibrateCommand calibrate;
  ProblemCommand problem;
  JobsCommand jobs;
  NodeCommand node;
  BankCommand bank;
  CertsCommand certs;
  AuditCommand audit;
  std::string doctor_device, shell;
  bool version = false;
};

std::string FullName(const CLI::App* app) {
  if (app->get_parent() == nullptr) return app->get_name();
  return absl::StrCat(FullName(app->get_parent()), " ", app->get_name());
}

std::vector<const CLI::App*> AllCommands(const CLI::App* app) {
  return app->get_subcommands([](const CLI::App*) { return true; });
}

std::string UsageOf(const CLI::App* app) {
  std::string usage = FullName(app);
  if (!AllCommands(app).empty()) absl::StrAppend(&usage, " COMMAND");
  for (const CLI::Option* option : app->get_options()) {
    if (!option->get_positional()) continue;
    absl::StrAppend(&usage, " ", option->get_name(true), option->get_items_expected_max() > 1 ? "..." : "");
  }
  return absl::StrCat(usage, " [OPTIONS]");
}

// Examples stand first, because most people copy one.
class ExamplesFirst : public CLI::Formatter {
 public:
  ExamplesFirst() { column_width(34); }

  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    if (mode == CLI::AppFormatMode::Sub) return CLI::Formatter::make_help(app, std::move(name), mode);
    std::string out = absl::StrCat(app->get_description(), "\n");
    if (!app->get_footer().empty()) absl::StrAppend(&out, "\nExamples:\n", app->get_footer(), "\n");
    absl::StrAppend(&out, "\nUsage: ", UsageOf(app), "\n");
    absl::StrAppend(&out, make_positionals(app), make_groups(app, mode), make_subcommands(app, mode));
    const CLI::App* root = app;
    while (root->get_parent() != nullptr) root = root->get_parent();
    if (root != app) {
      const auto common = root->get_options(
          [](const CLI::Option* option) { return !option->check_lname("help") && !option->check_lname("version"); });
      absl::StrAppend(&out, make_group("Common options", false, common));
    }
    while (absl::EndsWith(out, "\n\n")) out.pop_back();
    return out;
  }
};

// Whole numbers within bounds, without CLI11's jargon in the help.
void Bound(CLI::Option* option, int64_t low, int64_t high) {
  option->check(CLI::Validator(
      [low, high](std::string& text) -> std::string {
        int64_t value = 0;
        if (absl::SimpleAtoi(text, &value) && value >= low && value <= high) return "";
        return absl::StrCat("'", text, "' is not a whole number from ", low, " to ", high);
      },
      std::string()));
  option->type_name("N");
}

// The parser itself takes -1 for the largest number, and larger ones, too.
void Unsigned(CLI::Option* option) {
  option->check(CLI::Validator(
      [](std::string& text) -> std::string {
        uint64_t value = 0;
        if (absl::SimpleAtoi(text, &value)) return "";
        return absl::StrCat("'", text, "' is not a whole number from 0 to ", std::numeric_limits<uint64_t>::max());
      },
      std::string()));
}

void BoundReal(CLI::Option* option, double low, double high) {
  option->check(CLI::Validator(
      [low, high](std::string& text) -> std::string {
        double value = 0;
        if (absl::SimpleAtod(text, &value) && value >= low && value <= high) return "";
        return absl::StrCat("'", text, "' is not a number from ", low, " to ", high);
      },
      std::string()));
}

std::string LimitHelp() {
  std::string help = "Limit, repeatable; the limits are";
  size_t column = 0;
  for (const std::string& name : LimitNames()) {
    absl::StrAppend(&help, column == 0 ? "\n" : ", ", name);
    column = column + name.size() > 50 ? 0 : column + name.size();
  }
  return help;
}

void AddKey(CLI::App* app, std::string* key) {
  app->add_option("--idempotency-key", *key,
                  "16 to 64 characters: a command given twice with the same key makes one job, for scripts that retry")
      ->type_name("KEY");
}

void AddEvaluationFlags(CLI::App* app, EvaluationFlags* flags) {
  app->add_option("--device", flags->device, "Device to run on: auto, cpu, cuda, cuda:N")->type_name("DEVICE");
  Bound(app->add_option("--trials", flags->trials, "Input draws of the check (default 5)"), 1, 1000);
  app->add_option("--tolerance", flags->tolerance,
                  "scaled (default, unless the problem has its own), or ATOL,RTOL as KernelBench has them")
      ->type_name("RULE");
  app->add_option(
         "--precision", flags->precision,
         "same (default): no less than the reference's; reduced[,TOL]: any whose rms error is at most TOL of the "
         "output's (default 1e-2), and up to 1/8 where the output follows errors of the inputs many-fold")
      ->type_name("POLICY");
  app->add_option("--work", flags->work,
                  "Whose code may do the work, decided from what ran: anything (default), libraries (own kernels and "
                  "vendors' libraries, no torch), own_kernels (nothing else)")
      ->type_name("POLICY");
  app->add_option("--distributions", flags->distributions,
                  "Values to check on beside the problem's own: scaled,shifted,sparse,outliers,rare,integers (default: "
                  "all, with the scaled rule)")
      ->type_name("NAMES")
      ->take_all()
      ->expected(1);
  app->add_flag("--only-given-inputs", flags->only_given_inputs, "Check on the values that the problem draws alone");
  app->add_option("--baseline", flags->baseline, "What to compare with: eager (default), compile, all")
      ->type_name("WHICH");
  app->add_option("--cache", flags->cache,
                  "What timed calls find of their inputs in the last-level cache: cold (default), nothing; warm, what "
                  "fits")
      ->type_name("STATE");
  app->add_option("--limit", flags->limits, LimitHelp())->type_name("NAME=VALUE")->take_all()->expected(1);
  auto* min_time =
      app->add_option("--min-time", flags->min_time, "Keep sampling at least so long")->type_name("SECONDS");
  BoundReal(min_time, 0, 3600);
  auto* max_time =
      app->add_option("--max-time", flags->max_time, "Stop sampling then, once there are enough samples for a figure")
          ->type_name("SECONDS");
  BoundReal(max_time, 0, 3600);
  Bound(app->add_option("--samples", flags->samples, "Pairs of samples after which no more are begun"), 1, 1'000'000);
  app->add_flag("--keep-samples", flags->keep_samples, "Keep the raw pairs of times (grove show --json has them)");
  app->add_flag("--reuse", flags->reuse,
                "Take the result of an equal evaluation on an equal machine where there is one, its times included");
}

void AddProfileFlag(CLI::App* app, EvaluationFlags* flags) {
  app->add_flag("--profile", flags->profile,
                "Also run each correct kernel under Nsight Compute (CUDA): occupancy, memory, stalls, instruction mix; "
                "some seconds each");
}

void AddModelFlags(CLI::App* app, ModelFlags* models, bool shared) {
  const std::string group = shared ? "Models" : "Models, for the coordinator that this command starts";
  const auto add = [&](const char* name, std::string* value, const char* help, const char* type) {
    app->add_option(name, *value, help)->type_name(type)->group(group);
  };
  if (shared) {
    add("--llm-base-url", &models->base_url, "Endpoint of searches that name none", "URL");
    add("--llm-model", &models->model, "Model of searches that name none", "MODEL");
    app->add_flag("--llm-no-job-urls", models->no_job_urls, "Searches may not name an endpoint of their own")
        ->group(group);
  }
  add("--llm-api-key-file", &models->api_key_file, "File whose first line is the key", "FILE");
  add("--llm-api-key-env", &models->api_key_env, "Variable that holds it (default OPENAI_API_KEY)", "NAME");
  auto* tokens = app->add_option("--llm-max-output-tokens", models->max_output_tokens, "Length of an answer at most");
  Bound(tokens, 1, 10'000'000);
  tokens->group(group);
  app->add_flag("--llm-plain-http", models->plain_http, "Allow http:// endpoints on other machines")->group(group);
}

class Parser {
 public:
  Parser() : app_("Kernel Grove: search for the fastest correct GPU kernel, with proof", "grove") {
    app_.formatter(std::make_shared<ExamplesFirst>());
    app_.set_help_flag("-h,--help", "Show this help");
    app_.footer(
        "  grove search softmax.py                     search for a faster kernel, here and now\n"
        "  grove eval softmax.py mine.cu               is my kernel correct, and how fast is it?\n"
        "  grove up                                    coordinator and workers on this machine\n"
        "  grove tree j-abc                            what a search tried, and what came of it");
    app_.add_flag("--version", values_.version, "Show the version");
    AddGlobal();
    AddUp();
    AddSearch();
    AddEval();
    AddCompare();
    AddCalibrate();
    AddJobs();
    AddBank();
    AddProblem();
    AddFarm();
    AddAudit();
    AddCerts();
    AddCompletion();
  }

  CLI::App& app() { return app_; }
  Values& values() { return values_; }
  const Action* ActionOf(const CLI::App* app) const {
    const auto found = actions_.find(app);
    return found == actions_.end() ? nullptr : &found->second;
  }

 private:
  CLI::App* Command(CLI::App* parent, const std::string& name, const std::string& description,
                    const std::string& examples, Action action) {
    CLI::App* command = parent->add_subcommand(name, description);
    command->footer(examples);
    command->fallthrough();
    if (action) actions_[command] = std::move(action);
    return command;
  }

  void AddGlobal() {
    GlobalOptions& g = values_.global;
    app_.add_option("--coordinator", g.coordinator,
                    "Address of the coordinator (else GROVE_COORDINATOR, else the configuration)")
        ->type_name("HOST:PORT");
    app_.add_option("--config", g.config, "Configuration file (default ~/.config/grove/config.toml)")
        ->type_name("FILE");
    app_.add_option("--data", g.data, "Data folder of a local coordinator (default ~/.local/share/grove)")
        ->type_name("DIR");
    app_.add_option("--tls-ca", g.tls_ca, "CA certificate that the coordinator's must be of")->type_name("FILE");
    app_.add_option("--tls-cert", g.tls_cert, "Own certificate, for mutual TLS")->type_name("FILE");
    app_.add_option("--tls-key", g.tls_key, "Key of the own certificate")->type_name("FILE");
    BoundReal(app_.add_option("--reattach", g.reattach,
                              "How long to look for a coordinator that goes away during a watch (default 60)")
                  ->type_name("SECONDS"),
              0, 86400);
    app_.add_flag("--insecure", g.insecure, "Plaintext to a coordinator on another machine");
    app_.add_flag("--allow-weak-sandbox", g.allow_weak_sandbox,
                  "Workers that this command starts run even without all sandbox layers");
    app_.add_flag("--json", g.json, "One JSON document on stdout (NDJSON for watch)");
    app_.add_flag("-q,--quiet", g.quiet, "No messages and no progress, only errors");
    app_.add_flag("--no-color", g.no_color, "No colours (also NO_COLOR, TERM=dumb)");
  }

  void AddUp() {
    UpCommand& up = values_.up;
    CLI::App* command = Command(&app_, "up", "Run a coordinator and workers on this machine, in the foreground",
                                "  grove up                                    one worker per GPU, or one on the CPU\n"
                                "  grove up --device cpu --data /srv/grove\n"
                                "  grove up --listen 0.0.0.0:7433 --tls-cert c.crt --tls-key c.key --tls-ca ca.crt",
                                [this](const Context& context) { return RunUp(context, values_.up); });
    command->add_option("--device", up.device, "auto (default), cpu, cuda (all GPUs), cuda:N")->type_name("DEVICE");
    Bound(command->add_option("--workers", up.workers, "Workers to start (default one per device)"), 1, 64);
    command->add_option("--listen", up.listen, "Address to serve on (default 127.0.0.1:7433)")->type_name("HOST:PORT");
    command->add_option("--port-file", up.port_file, "Write the address here once serving, for scripts and port 0")
        ->type_name("FILE");
    command->add_option("--metrics-listen", up.metrics_listen, "Address for /metrics and /healthz of the coordinator")
        ->type_name("HOST:PORT");
    AddModelFlags(command, &up.models, /*shared=*/true);
  }

  void AddSearch() {
    SearchCommand& s = values_.search;
    CLI::App* command = Command(
        &app_, "search", "Search for a faster kernel for a problem",
        "  grove search softmax.py\n"
        "  grove search layernorm.py --rounds 5 --ideas 6 --variants 2 --keep 3 --device cuda\n"
        "  grove search conv.py --generator openai --model gpt-x --base-url https://api.example/v1 --record run.jsonl\n"
        "  grove search conv.py --generator replay:run.jsonl --seed 7\n"
        "  grove --coordinator farm:7433 search matmul.toml --detach",
        [this](const Context& context) {
          SearchCommand& search = values_.search;
          return grove::cli::RunSearch(context, search);
        });
    command->add_option("PROBLEM", s.problem, "KernelBench .py file, or native .toml")->required()->type_name("");
    command->add_option("--generator", s.generator, "catalogue (default), openai, replay:FILE")->type_name("KIND");
    command->add_option("--model", s.model, "Model of the openai generator");
    command->add_option("--base-url", s.base_url, "Its endpoint (default: the coordinator's)")->type_name("URL");
    BoundReal(
        command->add_option("--temperature", s.temperature, "Its temperature (default: the model's)")->type_name("T"),
        0, 10);
    Bound(command->add_option("--rounds", s.rounds, "Rounds (default 3)"), 1, 10'000);
    Bound(command->add_option("--ideas", s.ideas, "Ideas per parent (default 4)"), 1, 1000);
    Bound(command->add_option("--variants", s.variants, "Kernels per idea (default 2)"), 1, 1000);
    Bound(command->add_option("--keep", s.keep, "Kernels that each round starts from (default 3)"), 1, 1000);
    Bound(command->add_option("--max-evaluations", s.max_evaluations, "Evaluations at most (default 1000)"), 1,
          1'000'000);
    Bound(command->add_option("--repairs", s.repairs, "Attempts to repair a failed kernel (default 1, 0 = none)"), 0,
          100);
    auto* explore =
        command->add_option("--explore", s.explore, "Share kept for novelty, not speed (default 0.2, 0 = none)");
    BoundReal(explore->type_name("SHARE"), 0, 1);
    auto* seconds = command->add_option("--max-seconds", s.max_seconds, "Wall time at most (default none)");
    BoundReal(seconds->type_name("SECONDS"), 0, 1e7);
    Unsigned(command->add_option("--seed", s.seed, "Seed of the search's own choices (default 0)")->type_name("N"));
    command->add_flag("--no-bank", s.no_bank, "Do not start from kernels in the bank");
    command->add_option("--name", s.name, "Name of the job (default: the problem's)")->type_name("NAME");
    command->add_flag("--detach", s.detach, "Submit, print the job's id and return");
    AddKey(command, &s.key);
    command->add_option("--record", s.record, "Write the model's answers there, for replay:FILE")->type_name("FILE");
    AddEvaluationFlags(command, &s.evaluation);
    AddProfileFlag(command, &s.evaluation);
    AddModelFlags(command, &s.models, /*shared=*/false);
    search_ = command;
  }

  void AddEval() {
    EvalCommand& e = values_.eval;
    CLI::App* command =
        Command(&app_, "eval", "Judge kernels: build, check and time each against the problem's reference",
                "  grove eval softmax.py mine.cu\n"
                "  grove eval softmax.py a.cpp b.cpp --device cpu --json\n"
                "  grove eval softmax.py model_new.py --tolerance 1e-2,1e-2 --baseline all\n"
                "  grove eval softmax.py model_new.py --work own_kernels     is it its own work, or torch's?\n"
                "  grove eval softmax.py slow.cu --limit run_wall_seconds=2m --limit memory_bytes=8GiB",
                [this](const Context& context) { return RunEval(context, values_.eval); });
    command->add_option("PROBLEM", e.problem, "KernelBench .py file, or native .toml")->required()->type_name("");
    command->add_option("CANDIDATE", e.candidates, "Kernels: .cu, .cpp, or .py with ModelNew")
        ->required()
        ->type_name("")
        ->expected(1, 10'000);
    command->add_option("--build-flag", e.build_flags, "Further compiler flag, repeatable: --build-flag=-DTILE=32")
        ->type_name("FLAG")
        ->take_all()
        ->expected(1);
    command->add_option("--name", e.name, "Name of the job (default: the problem's)")->type_name("NAME");
    command->add_flag("--detach", e.detach, "Submit, print the job's id and return");
    AddKey(command, &e.key);
    AddEvaluationFlags(command, &e.evaluation);
    AddProfileFlag(command, &e.evaluation);
    command->add_flag("--no-timing", e.evaluation.no_timing, "Build and check only: no speedup");
  }

  void AddCompare() {
    CompareCommand& c = values_.compare;
    CLI::App* command = Command(
        &app_, "compare", "Is one kernel faster than another? Times both in alternation",
        "  grove compare softmax.py old.cu new.cu        is new.cu FASTER, SLOWER, the SAME, or is it UNCLEAR?\n"
        "  grove compare softmax.py base.cu a.cu b.cu    each of the others against base.cu\n"
        "  grove compare softmax.py k.cu k.cu --new-flag=--use_fast_math   two builds of one source",
        [this](const Context& context) { return RunCompare(context, values_.compare); });
    command->add_option("PROBLEM", c.problem, "KernelBench .py file, or native .toml")->required()->type_name("");
    command
        ->add_option("CANDIDATE", c.candidates,
                     "Kernels: .cu, .cpp, or .py with ModelNew; the first is what the others are compared with")
        ->required()
        ->type_name("")
        ->expected(2, 1000);
    const auto flags = [&](const char* name, std::vector<std::string>* value, const char* help) {
      command->add_option(name, *value, help)->type_name("FLAG")->take_all()->expected(1);
    };
    flags("--build-flag", &c.build_flags, "Further compiler flag of all, repeatable: --build-flag=-DTILE=32");
    flags("--old-flag", &c.rival_flags, "The same, of the first alone");
    flags("--new-flag", &c.candidate_flags, "The same, of the others alone");
    Bound(command->add_option(
              "--replicas", c.replicas,
              absl::StrCat("Pairs of processes, each a fresh start of both, that share the time and "
                           "the samples: two processes of one program differ, which one pair does not show "
                           "(default ",
                           measure::kDefaultReplicas, ")")),
          1, measure::kMostReplicas);
    command->add_option("--name", c.name, "Name of the job (default: the problem's)")->type_name("NAME");
    command->add_flag("--detach", c.detach, "Submit, print the job's id and return");
    AddKey(command, &c.key);
    AddEvaluationFlags(command, &c.evaluation);
  }

  void AddCalibrate() {
    CalibrateCommand& c = values_.calibrate;
    CLI::App* command = Command(&app_, "calibrate",
                                "Measure how finely a device's times tell kernels apart, and what the device can do",
                                "  grove calibrate                             at most seven minutes, kept by the "
                                "worker until something changes\n"
                                "  grove --coordinator farm:7433 calibrate --worker box-2 --runs 100",
                                [this](const Context& context) { return RunCalibrate(context, values_.calibrate); });
    command->add_option("--device", c.device, "Device to calibrate: auto, cpu, cuda, cuda:N")->type_name("DEVICE");
    command->add_option("--worker", c.worker, "Worker to calibrate, by id or name (default: any that is free)")
        ->type_name("WORKER");
    Bound(command->add_option("--runs", c.runs, "Runs of kernels against themselves (default 40)"), 1, 1000);
    BoundReal(command->add_option("--max-seconds", c.max_seconds, "Stop then, with fewer runs (default 420)")
                  ->type_name("SECONDS"),
              1, 3600);
    command->add_flag("--detach", c.detach, "Submit, print the job's id and return");
    AddKey(command, &c.key);
  }

  void AddJobs() {
    NodeCommand& n = values_.node;
    CLI::App* jobs =
        Command(&app_, "jobs", "List jobs, newest first", "  grove jobs\n  grove jobs --state running --json",
                [this](const Context& context) { return RunJobs(context, values_.jobs); });
    Bound(jobs->add_option("--limit", values_.jobs.limit, "Jobs at most (default 50)"), 1, 10'000);
    jobs->add_option("--state", values_.jobs.state, "Only those: running, paused, done, cancelled, failed")
        ->type_name("STATE");

    const auto with_id = [&](const char* name, const char* description, const char* examples,
                             ExitCode (*run)(const Context&, const NodeCommand&), const char* metavar,
                             const char* help) {
      CLI::App* command = Command(&app_, name, description, examples,
                                  [this, run](const Context& context) { return run(context, values_.node); });
      command->add_option(metavar, n.id, help)->required()->type_name("");
      return command;
    };
    const char* job_help = "Job id, or its first characters";
    with_id("job", "Show one job", "  grove job j-abcdefgh", RunJob, "ID", job_help);
    CLI::App* watch =
        with_id("watch", "Watch a job until it ends",
                "  grove watch j-abcdefgh\n  grove watch j-abcdefgh --json | jq .event", RunWatch, "ID", job_help);
    Unsigned(watch->add_option("--after", n.after, "Only events after this sequence number")->type_name("SEQ"));
    CLI::App* cancel = with_id("cancel", "Cancel a job", "  grove cancel j-abcdefgh --reason 'wrong shapes'", RunCancel,
                               "ID", job_help);
    cancel->add_option("--reason", n.reason, "Why, for the record")->type_name("TEXT");
    CLI::App* resume =
        with_id("resume", "Go on with a job that was paused, interrupted or has ended, and watch it",
                "  grove resume j-abcdefgh\n  grove resume j-abcdefgh --extra-rounds 2", RunResume, "ID", job_help);
    Bound(resume->add_option("--extra-rounds", n.extra_rounds, "Further rounds"), 1, 10'000);
    Bound(resume->add_option("--extra-evaluations", n.extra_evaluations, "Further evaluations"), 1, 1'000'000);
    AddModelFlags(resume, &n.models, /*shared=*/false);
    CLI::App* tree = with_id("tree", "Show what a search tried and what came of it",
                             "  grove tree j-abcdefgh\n  grove tree j-abcdefgh --format dot | dot -Tsvg > tree.svg",
                             RunTree, "ID", job_help);
    tree->add_option("--format", n.format, "text (default), json, dot")
        ->type_name("FORMAT")
        ->check(CLI::Validator(
            [](std::string& text) -> std::string {
              return text == "text" || text == "json" || text == "dot"
                         ? ""
                         : absl::StrCat("'", text, "' is not one of text, json, dot");
            },
            std::string()));
    CLI::App* best = with_id("best", "Get the fastest correct kernel of a job",
                             "  grove best j-abcdefgh                       its source on stdout\n"
                             "  grove best j-abcdefgh -o softmax.cu",
                             RunBest, "ID", job_help);
    best->add_option("-o,--output", n.output, "Write the source there")->type_name("FILE");
    with_id("show", "Show a node: source, build log, verdict, samples, lineage",
            "  grove show j-abcdefgh/k12\n  grove show j-abcdefgh/i3", RunShow, "NODE", "Kernel JOB/k1 or idea JOB/i1");
  }

  void AddBank() {
    BankCommand& b = values_.bank;
    CLI::App* bank =
        Command(&app_, "bank", "The bank of good kernels, kept across searches",
                "  grove bank list --operation softmax\n  grove bank add j-abcdefgh/k12\n  grove bank show b-abcdefgh",
                nullptr);
    CLI::App* list =
        Command(bank, "list", "List the bank's kernels", "  grove bank list --operation softmax --device cuda",
                [this](const Context& context) { return RunBankList(context, values_.bank); });
    list->add_option("--operation", b.operation, "Only this operation")->type_name("OP");
    list->add_option("--device", b.device, "Only this device: cpu, cuda")->type_name("DEVICE");
    CLI::App* show = Command(bank, "show", "Show one entry with its source", "  grove bank show b-abcdefgh",
                             [this](const Context& context) { return RunBankShow(context, values_.bank); });
    show->add_option("ENTRY", b.id, "Entry id")->required()->type_name("");
    CLI::App* add = Command(bank, "add", "Put a correct kernel of a job, or a file, into the bank",
                            "  grove bank add j-abcdefgh/k12\n  grove bank add mine.cu --operation softmax --device "
                            "cuda --note 'from a talk'",
                            [this](const Context& context) { return RunBankAdd(context, values_.bank); });
    add->add_option("SOURCE", b.source, "Kernel node JOB/k1, or a .cu, .cpp or .py file")->required()->type_name("");
    add->add_option("--operation", b.operation,
                    "What it computes: softmax, layer_norm, ... (a search's kernel brings it along)")
        ->type_name("OP");
    add->add_option("--device", b.device, "What a file runs on: cpu, cuda")->type_name("DEVICE");
    add->add_option("--note", b.note, "For the record")->type_name("TEXT");
    CLI::App* remove = Command(bank, "remove", "Take an entry out of the bank", "  grove bank remove b-abcdefgh",
                               [this](const Context& context) { return RunBankRemove(context, values_.bank); });
    remove->add_option("ENTRY", b.id, "Entry id")->required()->type_name("");
  }

  void AddProblem() {
    ProblemCommand& p = values_.problem;
    CLI::App* problem = Command(&app_, "problem", "Problems themselves", "  grove problem check softmax.py", nullptr);
    CLI::App* check = Command(problem, "check", "Is a problem a measure of kernels? Says what is wrong with it",
                              "  grove problem check softmax.py\n"
                              "  grove problem check matmul.toml --device cuda --json",
                              [this](const Context& context) { return RunProblemCheck(context, values_.problem); });
    check->add_option("PROBLEM", p.problem, "KernelBench .py file, or native .toml")->required()->type_name("");
    check->add_option("--device", p.device, "Device to check it on: auto, cpu, cuda, cuda:N")->type_name("DEVICE");
    check->add_flag("--detach", p.detach, "Submit, print the job's id and return");
    AddKey(check, &p.key);
  }

  void AddFarm() {
    Command(&app_, "workers", "List the workers that are or were connected", "  grove workers\n  grove workers --json",
            [](const Context& context) { return RunWorkers(context); });
    CLI::App* doctor = Command(&app_, "doctor", "Check this machine as a worker, and the coordinator",
                               "  grove doctor\n  grove doctor --device cuda",
                               [this](const Context& context) { return RunDoctor(context, values_.doctor_device); });
    doctor->add_option("--device", values_.doctor_device, "Device to check: cpu, cuda, cuda:N")->type_name("DEVICE");
    Command(&app_, "version", "Show versions", "  grove version --json",
            [](const Context& context) { return RunVersion(context); });
  }

  void AddAudit() {
    AuditCommand& a = values_.audit;
    CLI::App* command = Command(&app_, "audit", "Try known ways to fool an evaluator on this farm, and honest kernels",
                                "  grove audit                                 everything that runs on this device\n"
                                "  grove audit --device cuda --class timing --class replay\n"
                                "  grove audit --case C01 --case H01 --json\n"
                                "  grove audit --list",
                                [this](const Context& context) { return RunAudit(context, values_.audit); });
    command->add_option("--device", a.device, "Device to run on: auto, cpu, cuda, cuda:N")->type_name("DEVICE");
    command->add_option("--case", a.ids, "Only this case, repeatable")->type_name("ID")->take_all()->expected(1);
    command->add_option("--class", a.classes, "Only this class of cases, repeatable")
        ->type_name("CLASS")
        ->take_all()
        ->expected(1);
    command->add_option("--corpus", a.corpus, "Folder of the cases (default: the one of this installation)")
        ->type_name("DIR");
    command->add_flag("--list", a.list, "List the cases and run none");
  }

  void AddCerts() {
    CertsCommand& c = values_.certs;
    CLI::App* certs = Command(&app_, "certs", "Make a certificate authority and certificates for a farm",
                              "  grove certs init --dir certs\n  grove certs issue coordinator --dir certs --host "
                              "farm.example --host 10.0.0.7",
                              nullptr);
    CLI::App* init = Command(certs, "init", "Make a certificate authority", "  grove certs init --dir certs",
                             [this](const Context& context) { return RunCertsInit(context, values_.certs); });
    CLI::App* issue = Command(certs, "issue", "Make a certificate signed by it",
                              "  grove certs issue coordinator --dir certs --host farm.example --host 10.0.0.7\n"
                              "  grove certs issue worker-3 --dir certs",
                              [this](const Context& context) { return RunCertsIssue(context, values_.certs); });
    issue->add_option("NAME", c.name, "Name of the files and of the holder")->required()->type_name("");
    issue->add_option("--host", c.hosts, "DNS name or IP address, repeatable (default: this machine only)")
        ->type_name("HOST")
        ->take_all()
        ->expected(1);
    init->add_option("--name", c.name, "Name of the authority")->type_name("NAME");
    for (CLI::App* command : {init, issue}) {
      command->add_option("--dir", c.dir, "Folder of the authority (default ~/.config/grove/certs)")->type_name("DIR");
      Bound(command->add_option("--days", c.days, "Validity in days"), 1, 36'500);
      command->add_flag("--force", c.force, "Replace what is there");
    }
  }

  void AddCompletion() {
    CLI::App* command = Command(
        &app_, "completion", "Print a completion script for your shell",
        "  source <(grove completion bash)\n  grove completion zsh > ~/.zfunc/_grove", [this](const Context& context) {
          const CompletionCommand description = DescribeApp();
          if (values_.shell != "bash" && values_.shell != "zsh") {
            return Fail(context, absl::InvalidArgumentError(absl::StrCat("there is no completion for '", values_.shell,
                                                                         "'; it is bash or zsh")));
          }
          return context.console->Out(values_.shell == "bash" ? BashCompletion(description)
                                                              : ZshCompletion(description))
                     ? ExitCode::kOk
                     : ExitCode::kInfrastructure;
        });
    command->add_option("SHELL", values_.shell, "bash or zsh")->required()->type_name("");
  }

 public:
  const CLI::App* search() const { return search_; }

 private:
  CLI::App app_;
  Values values_;
  std::map<const CLI::App*, Action> actions_;
  CLI::App* search_ = nullptr;
};

CompletionCommand Describe(const CLI::App* app, const std::vector<CompletionOption>& common) {
  static const std::map<std::string, std::vector<std::string>> kValues = {
      {"--device", {"auto", "cpu", "cuda"}},
      {"--format", {"text", "json", "dot"}},
      {"--baseline", {"eager", "compile", "all"}},
      {"--work", WorkPolicyNames()},
      {"--cache", {"cold", "warm"}},
      {"--precision", {"same", "reduced"}},
      {"--generator", {"catalogue", "openai", "replay:"}},
      {"--tolerance", {"scaled", "1e-2,1e-2", "1e-4,1e-4"}},
      {"--state", {"running", "paused", "done", "cancelled", "failed"}},
  };
  CompletionCommand command;
  command.name = app->get_name();
  command.description = app->get_description();
  for (const CLI::Option* option : app->get_options()) {
    if (option->get_positional() && option->get_snames().empty() && option->get_lnames().empty()) {
      const std::string name = option->get_name(true);
      if (name == "SHELL") command.values = {"bash", "zsh"};
      if (name == "PROBLEM" || name == "CANDIDATE" || name == "SOURCE") command.files = true;
      continue;
    }
    CompletionOption described;
    for (const std::string& name : option->get_lnames()) described.names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) described.names.push_back("-" + name);
    described.description = option->get_description();
    described.takes_value = option->get_items_expected_max() > 0;
    const std::string type = option->get_type_name();
    described.files = described.takes_value && (type == "FILE" || type == "DIR");
    if (!described.names.empty()) {
      const auto found = kValues.find(described.names.front());
      if (found != kValues.end()) described.values = found->second;
      if (type == "NAME=VALUE") {
        for (const std::string& limit : LimitNames()) described.values.push_back(limit + "=");
      }
    }
    command.options.push_back(std::move(described));
  }
  std::vector<CompletionOption> below = common;
  if (app->get_parent() == nullptr) {
    for (const CompletionOption& option : command.options) {
      if (option.names.front() != "--help" && option.names.front() != "--version") below.push_back(option);
    }
  } else {
    command.options.insert(command.options.end(), common.begin(), common.end());
  }
  for (const CLI::App* sub : AllCommands(app)) {
    command.commands.push_back(Describe(sub, below));
  }
  return command;
}

const CLI::App* Deepest(const CLI::App* app) {
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  return app;
}

// One line for a command line that could not be parsed.
std::string ExplainParseError(const CLI::App& root, const CLI::ParseError& error,
                              const std::vector<std::string>& words) {
  const CLI::App* at = Deepest(&root);
  std::string message = error.what();
  constexpr absl::string_view kExtras = "not expected: ";
  std::vector<std::string> extras;
  if (const size_t position = message.find(std::string(kExtras)); position != std::string::npos) {
    extras = absl::StrSplit(message.substr(position + kExtras.size()), ' ', absl::SkipEmpty());
  } else if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    // Something is missing and something else unknown: a mistyped flag says more than what it left out.
    for (const std::string& word : root.remaining(/*recurse=*/true)) {
      if (absl::StartsWith(word, "-")) extras.push_back(word);
    }
  }
  if (!extras.empty()) {
    // The parser lists them in no useful order: the first on the command line is where it went wrong.
    const auto first = std::find_if(words.begin(), words.end(), [&](const std::string& word) {
      return std::find(extras.begin(), extras.end(), word) != extras.end();
    });
    const std::string word = first == words.end() ? (extras.empty() ? "" : extras.front()) : *first;
    std::vector<std::string> names;
    std::string kind;
    if (absl::StartsWith(word, "-")) {
      kind = "option";
      for (const CLI::App* app = at; app != nullptr; app = app->get_parent()) {
        for (const CLI::Option* option : app->get_options()) {
          for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
        }
      }
    } else {
      for (const CLI::App* sub : AllCommands(at)) names.push_back(sub->get_name());
      kind = names.empty() ? "argument" : "command";
    }
    // "--flag=value" is mistyped in its name.
    const std::string near = ClosestName(word.substr(0, word.find('=')), names);
    message = absl::StrCat(kind == "argument" ? "argument '" : absl::StrCat("unknown ", kind, " '"), word, "'",
                           kind == "argument" ? " is one too many" : "",
                           near.empty() ? "" : absl::StrCat("; did you mean '", near, "'?"));
  } else {
    message = std::string(absl::StripAsciiWhitespace(message));
  }
  return absl::StrCat(message, "\nSee `", FullName(at), " --help`.");
}

// The first word "--name=" with nothing behind it. The parser would take the word after it for the value, so that an
// empty variable in a script swallows the next argument.
std::string WordWithoutValue(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--") break;
    if (absl::StartsWith(word, "--") && word.find('=') == word.size() - 1) return word;
  }
  return "";
}

}  // namespace

CompletionCommand DescribeApp() {
  Parser parser;
  return Describe(&parser.app(), {});
}

int RunApp(int argc, const char* const* argv, Interrupts* interrupts, const GetEnv& env) {
  auto parser = std::make_unique<Parser>();
  CLI::App& app = parser->app();
  const auto finish = [](ExitCode code) { return static_cast<int>(code); };
  // --json counts even on a command line that cannot be parsed.
  const bool json_asked =
      std::any_of(argv, argv + argc, [](const char* word) { return std::string(word) == "--json"; });
  const std::vector<std::string> words = {argv + 1, argv + argc};
  if (const std::string word = WordWithoutValue(words); !word.empty()) {
    Console console({.json = json_asked}, env);
    Context context{parser->values().global, &console, interrupts, env};
    return finish(Fail(context, absl::InvalidArgumentError(absl::StrCat(
                                    "'", word, "' has nothing behind its '='; give the value there, or leave out ",
                                    word.substr(0, word.size() - 1)))));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    Console console(ConsoleOptions(), env);
    return finish(console.Out(app.help()) ? ExitCode::kOk : ExitCode::kInfrastructure);
  } catch (const CLI::ParseError& error) {
    Console console({.json = json_asked}, env);
    Context context{parser->values().global, &console, interrupts, env};
    return finish(Fail(context, absl::InvalidArgumentError(ExplainParseError(app, error, words))));
  }
  Values& values = parser->values();
  Console console({.quiet = values.global.quiet, .no_color = values.global.no_color, .json = values.global.json}, env);
  Context context{values.global, &console, interrupts, env};
  if (values.version) return finish(RunVersion(context));
  const CLI::App* chosen = Deepest(&app);
  const Action* action = parser->ActionOf(chosen);
  if (action == nullptr) {
    console.Error(
        absl::StrCat(chosen == &app ? "no command given" : absl::StrCat("'", FullName(chosen), "' needs a command"),
                     "\n\n", chosen->help()));
    return finish(ExitCode::kUsage);
  }
  values.search.repairs_given = parser->search()->count("--repairs") > 0;
  values.search.explore_given = parser->search()->count("--explore") > 0;
  return finish((*action)(context));
}

}  // namespace grove::cli
