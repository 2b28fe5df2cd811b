// A farm between machines as a user sets it up: certificates of `grove certs`, a coordinator that wants one of
// everybody.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/e2e/scene.h"

namespace grove::e2e {
namespace {

using nlohmann::json;

// Appends the flags for the certificate of that name.
std::vector<std::string> As(const Scene& scene, const std::string& name, std::vector<std::string> words) {
  words.insert(words.end(), {"--tls-ca", scene.Path("certs/ca.crt")});
  if (!name.empty()) {
    words.insert(words.end(), {"--tls-cert", scene.Path("certs/" + name + ".crt"), "--tls-key",
                               scene.Path("certs/" + name + ".key")});
  }
  return words;
}

TEST_CASE("A coordinator with certificates of grove certs serves who has one, and tells everybody else what to do",
          "[tls]") {
  Scene scene;
  const std::string dir = scene.Path("certs");
  CHECK(scene.Document({"certs", "init", "--dir", dir}, 0)["schema"] == "grove.v1/certs");
  CHECK(scene.Grove({"certs", "issue", "elsewhere", "--dir", dir, "--host", "farm.example"}).code == 0);
  CHECK(scene.Grove({"certs", "issue", "here", "--dir", dir, "--host", "127.0.0.1"}).code == 0);
  CHECK(scene.Grove({"certs", "issue", "someone", "--dir", dir}).code == 0);

  const auto serve = [&](const std::string& name) {
    const std::string port_file = scene.Path(name + ".port");
    auto coordinator = scene.Start(As(
        scene, name,
        {Program("grove-coordinator"), "--data", scene.data(), "--listen", "127.0.0.1:0", "--port-file", port_file}));
    REQUIRE(Eventually([&] { return !ReadText(port_file).empty() || !coordinator->Running(); }));
    INFO(coordinator->Err());
    REQUIRE(coordinator->Running());
    const std::string address = ReadText(port_file);
    scene.ConnectTo(address.substr(0, address.find('\n')));
    return coordinator;
  };
  {
    const auto coordinator = serve("elsewhere");
    const Ended refused = scene.Grove(As(scene, "someone", {"jobs"}));
    CHECK(refused.code == 3);
    CHECK(Contains(refused.err, "grove certs issue NAME --host HOST"));
    coordinator->Kill();
  }
  const auto coordinator = serve("here");
  const Ended plain = scene.Grove({"jobs"});
  CHECK(plain.code == 3);
  CHECK(Contains(plain.err, "give --tls-ca"));
  const Ended anonymous = scene.Grove(As(scene, "", {"jobs"}));
  CHECK(anonymous.code == 3);
  CHECK(Contains(anonymous.err, "give --tls-cert and --tls-key"));
  CHECK(scene.Grove(As(scene, "someone", {"jobs"})).code == 0);
  // A worker comes in by the same door.
  const auto worker = scene.Start(As(
      scene, "someone",
      {Program("grove-worker"), "--coordinator", scene.address(), "--device", "cpu", "--state", scene.Path("worker")}));
  const json judged =
      scene.Document(Quick(As(scene, "someone", {"eval", TestCase("relu.py"), TestCase("relu.cpp")})), 0);
  CHECK(judged["results"][0]["verdict"] == "CORRECT");
}

}  // namespace
}  // namespace grove::e2e
