// `grove search` from end to end: with the catalogue, with a model behind a local HTTP server, and with a recording.
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/e2e/scene.h"
#include "tests/support/http_server.h"

namespace grove::e2e {
namespace {

using nlohmann::json;
using testing::ChatReply;
using testing::HttpRecord;
using testing::HttpReply;
using testing::HttpServer;

constexpr char kKey[] = "sk-e2e-0123456789abcdefghijklmnopqrstuv";

std::vector<std::string> Search(const std::string& problem, std::vector<std::string> more) {
  std::vector<std::string> words = {"search", problem, "--rounds",  "1",      "--variants", "1",
                                    "--keep", "1",     "--no-bank", "--seed", "7"};
  words.insert(words.end(), more.begin(), more.end());
  return Quick(words);
}

// relu with so many rows at a time: right for every `block`, and another text for each.
std::string ReluSource(int block) {
  return "#include <grove/kernel.h>\nGROVE_KERNEL(args) {\n"
         "  const float* x = static_cast<const float*>(args->inputs[0].data);\n"
         "  float* y = static_cast<float*>(args->outputs[0].data);\n"
         "  const int64_t n = args->inputs[0].shape[0] * args->inputs[0].shape[1];\n"
         "  for (int64_t i = 0; i < n; i += " +
         std::to_string(block) + ")\n    for (int64_t j = i; j < n && j < i + " + std::to_string(block) +
         "; ++j) y[j] = x[j] > 0 ? x[j] : 0;\n  return 0;\n}\n";
}

std::string Fenced(const std::string& source) { return "Here it is.\n\n```cpp\n" + source + "```\n"; }

std::string IdeasText(int count) {
  json ideas = json::array();
  for (int i = 0; i < count; ++i) {
    ideas.push_back({{"title", "Blocks of size " + std::to_string(i)},
                     {"description", "Goes through the elements in blocks."},
                     {"category", "memory"},
                     {"predicted_speedup", 1.5}});
  }
  return "```json\n" + ideas.dump() + "\n```\n";
}

// A model that knows relu. It repeats the key that it was given, as a server's debugging page might.
class Model {
 public:
  explicit Model(HttpServer* server) : server_(server) {
    server_->Handle([this](const HttpRecord& request) { return Answer(request); });
  }
  std::set<std::string> Authorizations() const {
    std::set<std::string> seen;
    for (const HttpRecord& request : server_->requests()) {
      const auto found = request.headers.find("authorization");
      seen.insert(found == request.headers.end() ? "" : found->second);
    }
    return seen;
  }

 private:
  HttpReply Answer(const HttpRecord& request) {
    const json body = json::parse(request.body);
    std::string prompt;
    for (const json& message : body["messages"]) prompt += message["content"].get<std::string>();
    const std::string echo = std::string("(debug: authorization was ") + kKey + ")\n";
    if (!Contains(prompt, "# The idea to write out")) return ChatReply(echo + IdeasText(2));
    return ChatReply(echo + Fenced(ReluSource(64 << written_++)));
  }

  HttpServer* server_;
  std::atomic<int> written_{0};
};

// Whether the text stands anywhere below the folder, in files as they are and in the store's compressed blobs.
bool FolderHolds(Scene& scene, const std::string& folder, const std::string& text) {
  const Ended ended = scene
                          .Start({GROVE_PYTHON, "-c", R"(
import os, sqlite3, sys, zlib
folder, text = sys.argv[1], sys.argv[2].encode()
looked, found = 0, []
def look(where, data):
    global looked
    looked += 1
    if text in data: found.append(where)
    try: plain = zlib.decompress(data[8:])
    except zlib.error: return
    if text in plain: found.append(where + ' (compressed)')
for root, _, files in os.walk(folder):
    for name in files:
        path = os.path.join(root, name)
        if os.path.isfile(path): look(path, open(path, 'rb').read())
db = sqlite3.connect('file:' + folder + '/journal.db?mode=ro', uri=True)
for sha, data in db.execute('SELECT sha256, data FROM blobs WHERE data IS NOT NULL'): look(sha, data)
for seq, data in db.execute('SELECT seq, payload FROM events'): look('event %d' % seq, data)
assert looked > 10, looked
print(found)
sys.exit(1 if found else 0)
)",
                                  folder, text})
                          ->Wait();
  INFO(ended.out << ended.err);
  REQUIRE((ended.code == 0 || ended.code == 1));
  REQUIRE(ended.err.empty());
  return ended.code == 1;
}

// Candidate sources of a job's kernels with their verdicts, whatever their order.
std::multiset<std::string> Verdicts(Scene& scene, const std::string& job) {
  std::multiset<std::string> all;
  for (const json& node : scene.Document({"tree", job}, 0)["nodes"]) {
    if (node["kind"] == "kernel") {
      all.insert(node["result"].value("candidate_sha256", "?") + " " + node["result"].value("verdict", "?"));
    }
  }
  return all;
}

TEST_CASE("A search with the catalogue ends with a correct kernel that can be looked at", "[search]") {
  Scene scene;
  scene.Up();
  const json found = scene.Document(Search(TestCase("relu.py"), {"--ideas", "3", "--max-evaluations", "4"}), 0);
  CHECK(found["schema"] == "grove.v1/search");
  CHECK(found["state"] == "DONE");
  REQUIRE(found["best"].is_object());
  CHECK(found["best"]["result"]["verdict"] == "VERDICT_CORRECT");
  CHECK(found["speedup"].get<double>() > 0);
  CHECK(found["speedup_low"].get<double>() <= found["speedup"].get<double>());
  const std::string job = found["job"], best = found["best"]["id"];
  // As a person reads it, and as a program does.
  const Ended tree = scene.Grove({"tree", job});
  CHECK(tree.code == 0);
  CHECK(Contains(tree.out, "CORRECT"));
  CHECK(scene.Document({"tree", job}, 0)["best_node"] == best);
  const Ended source = scene.Grove({"best", job});
  CHECK(source.code == 0);
  CHECK(Contains(source.out, "GROVE_KERNEL"));
  const std::string file = scene.Path("best.cpp");
  CHECK(scene.Grove({"best", job, "-o", file}).code == 0);
  CHECK(ReadText(file) == source.out);
  const json node = scene.Document({"show", best}, 0);
  CHECK(node["node"]["candidate"]["source"] == source.out);
  CHECK(node["lineage"].size() >= 1);
  // What the search says is the best is what eval says of it.
  const json again = scene.Document(Quick({"eval", TestCase("relu.py"), file}), 0);
  CHECK(again["results"][0]["verdict"] == "CORRECT");
  CHECK(scene.Grove({"job", job}).code == 0);
  // Both go into the bank by their nodes; of what an evaluation computes nobody knows the name.
  const json kept = scene.Document({"bank", "add", best, "--note", "by hand"}, 0)["entry"];
  CHECK(kept["note"] == "by hand");
  CHECK_FALSE(kept["operation"].get<std::string>().empty());
  const std::string node_of_eval = again["results"][0]["node"];
  const Ended unnamed = scene.Grove({"bank", "add", node_of_eval});
  CHECK(unnamed.code == 2);
  CHECK(Contains(unnamed.err, "--operation"));
  const json named = scene.Document({"bank", "add", node_of_eval, "--operation", "rectifier"}, 0)["entry"];
  CHECK(named["origin_node"] == node_of_eval);
  const json listed = scene.Document({"bank", "list", "--operation", "rectifier"}, 0)["entries"];
  REQUIRE(listed.size() == 1);
  CHECK(listed[0]["id"] == named["id"]);
  CHECK(scene.Document({"bank", "show", named["id"]}, 0)["entry"]["candidate"]["source"] == source.out);
  CHECK(scene.Grove({"bank", "remove", named["id"]}).code == 0);
  CHECK(scene.Document({"bank", "list", "--operation", "rectifier"}, 0)["entries"].empty());
}

TEST_CASE("The catalogue says that it does not know an operation", "[search]") {
  Scene scene;
  const std::string problem = scene.Write("sorting.py",
                                          "import torch\nimport torch.nn as nn\n\n\nclass Model(nn.Module):\n"
                                          "    def forward(self, x):\n        return torch.sort(x, dim=1)[0]\n\n\n"
                                          "def get_inputs():\n    return [torch.randn(32, 64)]\n\n\n"
                                          "def get_init_inputs():\n    return []\n");
  const json document = scene.Document(Search(problem, {"--ideas", "1"}), 2);
  CHECK(document["state"] == "FAILED");
  CHECK(Contains(document["state_reason"], "openai"));
}

TEST_CASE("A model that the user names gets the key and nobody else does, and what it said can be replayed",
          "[search]") {
  Scene scene;
  HttpServer server;
  Model model(&server);
  scene.environment()["OPENAI_API_KEY"] = kKey;
  const std::string recording = scene.Path("run.jsonl");
  const Ended ended =
      scene.Grove(Search(TestCase("relu.py"), {"--ideas", "2", "--generator", "openai", "--model", "test-model",
                                               "--base-url", server.base_url(), "--record", recording, "--json"}));
  CHECK(ended.code == 0);
  const json found = json::parse(ended.out, nullptr, false);
  REQUIRE(found.is_object());
  CHECK(found["state"] == "DONE");
  CHECK(found["verdicts"]["CORRECT"] == 2);
  CHECK(model.Authorizations() == std::set<std::string>{std::string("Bearer ") + kKey});
  CHECK_FALSE(Contains(ended.out, kKey));
  CHECK_FALSE(Contains(ended.err, kKey));
  CHECK_FALSE(Contains(ReadText(recording), kKey));
  CHECK_FALSE(FolderHolds(scene, scene.data(), kKey));
  // The look itself can find what is there.
  CHECK(FolderHolds(scene, scene.data(), "authorization was"));

  // The recording gives the same kernels, without the model.
  const size_t asked = server.requests().size();
  const json again =
      scene.Document(Search(TestCase("relu.py"), {"--ideas", "2", "--generator", "replay:" + recording}), 0);
  CHECK(again["state"] == "DONE");
  CHECK(server.requests().size() == asked);
  CHECK(Verdicts(scene, again["job"]) == Verdicts(scene, found["job"]));
}

TEST_CASE("A model that talks nonsense fails the search with what it said, and resume asks it anew", "[search]") {
  Scene scene;
  HttpServer server;
  server.Queue({.body = "<html>Not here</html>"});
  Model model(&server);  // makes sense from then on
  scene.environment()["OPENAI_API_KEY"] = kKey;
  const std::string recording = scene.Path("run.jsonl");
  const Ended failed =
      scene.Grove(Search(TestCase("relu.py"), {"--ideas", "2", "--generator", "openai", "--model", "test-model",
                                               "--base-url", server.base_url(), "--record", recording, "--json"}));
  CHECK(failed.code == 2);
  const json document = json::parse(failed.out, nullptr, false);
  REQUIRE(document.is_object());
  CHECK(document["state"] == "FAILED");
  CHECK(Contains(document["state_reason"], "no JSON object"));
  CHECK(Contains(failed.err, "no model gave an answer"));
  // What resume wants is said with the flags that give it, and then it goes on.
  const std::string job = document["job"];
  const Ended what = scene.Grove({"resume", job});
  CHECK(what.code == 2);
  CHECK(Contains(what.err, "--extra-rounds"));
  const json resumed = scene.Document({"resume", job, "--extra-rounds", "1"}, 0);
  CHECK(resumed["job"] == job);
  CHECK(resumed["state"] == "DONE");
  CHECK(resumed["best"].is_object());
}

TEST_CASE("A recording written by hand is replayed", "[search]") {
  Scene scene;
  const auto line = [](const char* kind, const char* request, const std::string& answer) {
    return json{{"grove_recording", 1}, {"kind", kind}, {"request", request}, {"answer", answer}}.dump() + "\n";
  };
  const std::string wrong = "#include <grove/kernel.h>\nGROVE_KERNEL(args) { (void)args; return 0; }\n";
  const std::string recording =
      scene.Write("hand.jsonl", line("ideas", "a", IdeasText(2)) + line("kernel", "b", Fenced(ReluSource(128))) +
                                    line("kernel", "c", Fenced(wrong)));
  const json found = scene.Document(
      Search(TestCase("relu.py"), {"--ideas", "2", "--repairs", "0", "--generator", "replay:" + recording}), 0);
  CHECK(found["verdicts"]["CORRECT"] == 1);
  CHECK(found["verdicts"]["WRONG"] == 1);
  const Ended bad = scene.Grove(
      Search(TestCase("relu.py"), {"--generator", "replay:" + scene.Write("bad.jsonl", "{\"not\": \"one\"}\n")}));
  CHECK(bad.code == 2);
  CHECK(Contains(bad.err, "recording"));
}

TEST_CASE("A coordinator that is shared sends no key to a URL that a job names", "[search]") {
  Scene scene;
  HttpServer server;
  Model model(&server);
  scene.environment()["OPENAI_API_KEY"] = kKey;
  scene.Up();
  const json found = scene.Document(Search(TestCase("relu.py"), {"--ideas", "1", "--generator", "openai", "--model",
                                                                 "test-model", "--base-url", server.base_url()}),
                                    0);
  CHECK(found["verdicts"]["CORRECT"] == 1);
  CHECK(model.Authorizations() == std::set<std::string>{""});
}

TEST_CASE("Ctrl-C in a search keeps it, looking asks no model, and resume has the key again and finishes", "[search]") {
  Scene scene;
  HttpServer server;
  Model model(&server);
  server.Queue({.manner = HttpReply::Manner::kSilence});
  scene.environment()["OPENAI_API_KEY"] = kKey;
  const auto search = scene.StartGrove(Search(TestCase("relu.py"), {"--ideas", "2", "--generator", "openai", "--model",
                                                                    "test-model", "--base-url", server.base_url()}));
  REQUIRE(Eventually([&] { return !server.requests().empty(); }));
  search->Signal(SIGINT);
  const Ended interrupted = search->Wait();
  CHECK(interrupted.code == 130);
  const size_t at = interrupted.err.find("`grove resume j-");
  REQUIRE(at != std::string::npos);
  const std::string job = interrupted.err.substr(at + 14, interrupted.err.find('`', at + 14) - at - 14);
  CHECK(interrupted.out.empty());

  const size_t asked = server.requests().size();
  CHECK(scene.Document({"tree", job}, 0)["state"] == "PAUSED");
  CHECK(scene.Grove({"jobs"}).code == 0);
  CHECK(server.requests().size() == asked);

  const json found = scene.Document({"resume", job}, 0);
  CHECK(found["state"] == "DONE");
  CHECK(found["verdicts"]["CORRECT"] == 2);
  CHECK(server.requests().size() > asked);
  CHECK(model.Authorizations() == std::set<std::string>{std::string("Bearer ") + kKey});
}

}  // namespace
}  // namespace grove::e2e
