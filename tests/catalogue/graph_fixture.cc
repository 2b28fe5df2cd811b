#include "tests/catalogue/graph_fixture.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

namespace grove::testing {

GraphFixture LoadGraph(const std::string& name) {
  std::ifstream file(std::string(GROVE_TESTDATA "/graphs/") + name + ".json");
  std::stringstream text;
  text << file.rdbuf();
  nlohmann::json json = nlohmann::json::parse(text.str());
  GraphFixture fixture;
  fixture.name = name;
  auto status = google::protobuf::util::JsonStringToMessage(json["description"].dump(), &fixture.description);
  if (!status.ok()) throw std::runtime_error(name + ": " + status.ToString());
  for (const auto& value : json["expected"]) fixture.expected.push_back(value.get<double>());
  return fixture;
}

std::vector<std::string> GraphNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(GROVE_TESTDATA "/graphs")) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

float InputValue(int64_t i, int arg, const std::string& name) {
  const double value = static_cast<double>((i * 7919 + arg * 104729 + 13) % 2003) / 1001.0 - 1.0;
  const float single = static_cast<float>(value);
  return name == "running_var" ? std::fabs(single) + 0.5f : single;
}

}  // namespace grove::testing
