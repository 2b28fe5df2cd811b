#include "worker/pipeline/floor.h"

#include <catch2/catch.hpp>

namespace grove::worker {
namespace {

v1::TensorType Type(const std::string& dtype, const std::vector<int64_t>& shape) {
  v1::TensorType type;
  type.set_dtype(dtype);
  for (int64_t size : shape) type.add_shape(size);
  return type;
}

void AddOp(v1::ProblemDescription* problem, const std::string& kind, const std::vector<std::string>& inputs,
           const std::string& output, const v1::TensorType& type) {
  v1::GraphOp* op = problem->add_graph();
  op->set_kind(kind);
  for (const std::string& input : inputs) op->add_inputs(input);
  op->add_outputs(output);
  *op->add_output_types() = type;
}

// C = A B, 64 x 128 x 32.
v1::ProblemDescription Matmul() {
  v1::ProblemDescription problem;
  *problem.add_inputs() = Type("float32", {64, 128});
  *problem.add_inputs() = Type("float32", {128, 32});
  *problem.add_outputs() = Type("float32", {64, 32});
  AddOp(&problem, "aten::matmul", {"in0", "in1"}, "v0", Type("float32", {64, 32}));
  problem.add_graph_outputs("v0");
  return problem;
}

v1::DeviceInfo Device() {
  v1::DeviceInfo device;
  device.mutable_calibration()->set_bandwidth_bytes_per_second(1e12);
  auto rate = [&](const char* precision, double value) {
    v1::Rate* r = device.mutable_calibration()->add_rates();
    r->set_precision(precision);
    r->set_operations_per_second(value);
  };
  rate("float32", 50e12);
  rate("tf32", 400e12);
  rate("bfloat16", 800e12);
  return device;
}

TEST_CASE("A product counts two operations a term and each matrix once", "[floor]") {
  const WorkCount count = CountWork(Matmul());
  CHECK(count.operations.at("float32") == 2.0 * 64 * 32 * 128);
  CHECK(count.bytes == 4.0 * (64 * 128 + 128 * 32 + 64 * 32));
  CHECK(count.error.empty());
}

TEST_CASE("A convolution counts its filter per output and a transposed one per input", "[floor]") {
  v1::ProblemDescription problem;
  *problem.add_inputs() = Type("float32", {2, 8, 16, 16});
  *problem.add_parameters() = Type("float32", {4, 8, 3, 3});
  const v1::TensorType out = Type("float32", {2, 4, 14, 14});
  *problem.add_outputs() = out;
  AddOp(&problem, "aten::_convolution", {"in0", "p0", "null", "[1,1]", "[0,0]", "[1,1]", "false"}, "v0", out);
  problem.add_graph_outputs("v0");
  CHECK(CountWork(problem).operations.at("float32") == 2.0 * (2 * 4 * 14 * 14) * (8 * 3 * 3));

  problem.mutable_graph(0)->set_inputs(6, "true");
  *problem.mutable_parameters(0) = Type("float32", {8, 4, 3, 3});
  CHECK(CountWork(problem).operations.at("float32") == 2.0 * (2 * 8 * 16 * 16) * (4 * 3 * 3));
}

TEST_CASE("What no output depends on need not move, and of a gathered table only what is taken", "[floor]") {
  v1::ProblemDescription problem = Matmul();
  *problem.add_inputs() = Type("float32", {1 << 20});
  AddOp(&problem, "aten::sum", {"in2"}, "v1", Type("float32", {}));
  CHECK(CountWork(problem).bytes == CountWork(Matmul()).bytes);
  CHECK(CountWork(problem).operations == CountWork(Matmul()).operations);

  v1::ProblemDescription gather;
  *gather.add_inputs() = Type("int64", {10});
  *gather.add_parameters() = Type("float32", {100000, 16});
  *gather.add_outputs() = Type("float32", {10, 16});
  AddOp(&gather, "aten::embedding", {"p0", "in0"}, "v0", Type("float32", {10, 16}));
  gather.add_graph_outputs("v0");
  CHECK(CountWork(gather).bytes == 10 * 8 + 2 * 10 * 16 * 4);
}

TEST_CASE("What is taken through views, windows and lists is what has to be read", "[floor]") {
  const double kByte = 4;
  v1::ProblemDescription rows;  // x.view(100, 1000)[:10] + 1
  *rows.add_inputs() = Type("float32", {100000});
  *rows.add_outputs() = Type("float32", {10, 1000});
  AddOp(&rows, "aten::view", {"in0", "[100,1000]"}, "v0", Type("float32", {100, 1000}));
  AddOp(&rows, "aten::slice", {"v0", "0", "0", "10", "1"}, "v1", Type("float32", {10, 1000}));
  AddOp(&rows, "aten::add", {"v1", "1", "1"}, "v2", Type("float32", {10, 1000}));
  rows.add_graph_outputs("v2");
  CHECK(CountWork(rows).input_bytes == kByte * 10000);
  // All of it, where something else reads it whole.
  AddOp(&rows, "aten::sum", {"in0"}, "v3", Type("float32", {}));
  rows.add_graph_outputs("v3");
  CHECK(CountWork(rows).input_bytes == kByte * 100000);

  // Elements are the same in another type, and take their own bytes.
  v1::ProblemDescription wide;  // x.double().swapaxes(0, 1)[:10]
  *wide.add_inputs() = Type("float32", {64, 100});
  *wide.add_outputs() = Type("float64", {10, 64});
  AddOp(&wide, "aten::to", {"in0", "7"}, "v0", Type("float64", {64, 100}));
  AddOp(&wide, "aten::swapaxes", {"v0", "0", "1"}, "v1", Type("float64", {100, 64}));
  AddOp(&wide, "aten::slice", {"v1", "0", "0", "10", "1"}, "v2", Type("float64", {10, 64}));
  wide.add_graph_outputs("v2");
  CHECK(CountWork(wide).input_bytes == kByte * 640);

  v1::ProblemDescription chunk;  // the first of four chunks
  *chunk.add_inputs() = Type("float32", {400});
  *chunk.add_outputs() = Type("float32", {100});
  AddOp(&chunk, "aten::chunk", {"in0", "4", "0"}, "v0", Type("Tensor[]", {}));
  v1::GraphOp* unpack = chunk.add_graph();
  unpack->set_kind("prim::ListUnpack");
  unpack->add_inputs("v0");
  for (const char* name : {"v1", "v2", "v3", "v4"}) {
    unpack->add_outputs(name);
    *unpack->add_output_types() = Type("float32", {100});
  }
  AddOp(&chunk, "aten::relu", {"v1"}, "v5", Type("float32", {100}));
  chunk.add_graph_outputs("v5");
  CHECK(CountWork(chunk).input_bytes == kByte * 100);

  v1::ProblemDescription strided;  // 1 x 1 windows, eight apart
  *strided.add_inputs() = Type("float32", {2, 16, 64, 64});
  *strided.add_parameters() = Type("float32", {32, 16, 1, 1});
  const v1::TensorType out = Type("float32", {2, 32, 8, 8});
  *strided.add_outputs() = out;
  AddOp(&strided, "aten::_convolution", {"in0", "p0", "null", "[8,8]", "[0,0]", "[1,1]", "false"}, "v0", out);
  strided.add_graph_outputs("v0");
  CHECK(CountWork(strided).input_bytes == kByte * (2 * 16 * 8 * 8 + 32 * 16));
  // Windows that overlap read each element once.
  *strided.mutable_parameters(0) = Type("float32", {32, 16, 11, 11});
  CHECK(CountWork(strided).input_bytes == kByte * (2 * 16 * 64 * 64 + 32 * 16 * 11 * 11));

  v1::ProblemDescription pool;
  *pool.add_inputs() = Type("float32", {1, 1, 64, 64});
  *pool.add_outputs() = Type("float32", {1, 1, 16, 16});
  AddOp(&pool, "aten::max_pool2d", {"in0", "[2,2]", "[4,4]", "[0,0]", "[1,1]", "false"}, "v0",
        Type("float32", {1, 1, 16, 16}));
  pool.add_graph_outputs("v0");
  CHECK(CountWork(pool).input_bytes == kByte * 16 * 16 * 4);
  pool.mutable_graph(0)->set_kind("aten::upsample_nearest2d");
  CHECK(CountWork(pool).input_bytes == kByte * 16 * 16);

  v1::ProblemDescription bag;
  *bag.add_inputs() = Type("int64", {20});
  *bag.add_parameters() = Type("float32", {1000, 8});
  *bag.add_outputs() = Type("float32", {5, 8});
  AddOp(&bag, "aten::embedding_bag", {"p0", "in0", "null"}, "v0", Type("float32", {5, 8}));
  bag.add_graph_outputs("v0");
  CHECK(CountWork(bag).input_bytes == 20 * 8 + kByte * 20 * 8);
}

TEST_CASE("The floor is the slower of moving and computing, and float32 may run as three TF32 products", "[floor]") {
  const WorkCount count = CountWork(Matmul());
  const v1::FloorReport floor = FloorOf(count, Device(), false, false);
  CHECK(floor.memory_seconds() == Approx(count.bytes / 1e12));
  CHECK(floor.compute_seconds() == Approx(count.operations.at("float32") / (400e12 / 3)));
  CHECK(floor.seconds() == std::max(floor.memory_seconds(), floor.compute_seconds()));
  CHECK(floor.bound() == "memory");
  CHECK(FloorOf(count, Device(), true, false).compute_seconds() == Approx(count.operations.at("float32") / 800e12));
}

TEST_CASE("A warm cache holds what need not move, and where it holds all there is no memory bound", "[floor]") {
  v1::ProblemDescription problem;
  *problem.add_inputs() = Type("float32", {1 << 20});
  *problem.add_outputs() = Type("float32", {1 << 20});
  AddOp(&problem, "aten::relu", {"in0"}, "v0", Type("float32", {1 << 20}));
  problem.add_graph_outputs("v0");
  const double bytes = 2 * 4.0 * (1 << 20);
  const auto judged = [&](int64_t cache, v1::CachePolicy policy) {
    v1::EvaluationResult result;
    *result.mutable_device() = Device();
    result.mutable_device()->set_l2_bytes(cache);
    result.set_verdict(v1::VERDICT_CORRECT);
    result.mutable_timing()->add_baselines()->set_candidate_median_seconds(bytes / 5e12);  // five times the memory's
    v1::EvaluationOptions options;
    options.set_cache(policy);
    AddFloor(problem, options, /*native=*/true, &result);
    return result.floor();
  };
  const v1::FloorReport cold = judged(50 << 20, v1::CACHE_POLICY_COLD);
  CHECK(cold.memory_seconds() == Approx(bytes / 1e12));
  CHECK_THAT(cold.source(), Catch::Contains("or the time is not true"));

  const v1::FloorReport warm = judged(50 << 20, v1::CACHE_POLICY_WARM);
  CHECK(warm.memory_seconds() == 0);
  CHECK(warm.bound() == "compute");
  CHECK(warm.fraction() < 1);
  CHECK_THAT(warm.source(), Catch::Contains("no memory bound, because the warm cache of 52.4 MB holds all 8.39 MB"));
  CHECK_THAT(warm.source(), !Catch::Contains("not true"));

  // What does not fit must move all the same.
  const v1::FloorReport large = judged(2 << 20, v1::CACHE_POLICY_WARM);
  CHECK(large.memory_seconds() == Approx((bytes - (2 << 20)) / 1e12));
  CHECK_THAT(large.source(), Catch::Contains("6.29 MB at 1 TB/s, which is what the warm cache of 2.1 MB cannot hold"));

  const v1::FloorReport unknown = judged(0, v1::CACHE_POLICY_WARM);
  CHECK(unknown.memory_seconds() == 0);
  CHECK_THAT(unknown.source(), Catch::Contains("its size is not known"));
}

TEST_CASE("Without a calibration there is a count but no floor, and it says what to do", "[floor]") {
  const v1::FloorReport floor = FloorOf(CountWork(Matmul()), {}, false, false);
  CHECK(floor.seconds() == 0);
  CHECK(floor.bytes() > 0);
  CHECK(floor.operations_size() == 1);
  CHECK(floor.source().find("grove calibrate") != std::string::npos);
}

TEST_CASE("A product in einsum's notation counts all combinations of its indices", "[floor]") {
  const auto counted = [](const std::string& equation, std::vector<std::vector<int64_t>> shapes) {
    v1::ProblemDescription problem;
    std::vector<std::string> names;
    for (const std::vector<int64_t>& shape : shapes) {
      names.push_back("in" + std::to_string(problem.inputs_size()));
      *problem.add_inputs() = Type("float32", shape);
    }
    AddOp(&problem, "prim::ListConstruct", names, "v0", Type("Tensor[]", {}));
    AddOp(&problem, "aten::einsum", {"\"" + equation + "\"", "v0", "null"}, "v1", Type("float32", {1}));
    problem.add_graph_outputs("v1");
    return CountWork(problem);
  };
  CHECK(counted("bij,jk->bik", {{3, 5, 7}, {7, 11}}).operations.at("float32") == 2.0 * 3 * 5 * 7 * 11);
  CHECK(counted("b i j , j k", {{3, 5, 1}, {7, 11}}).operations.at("float32") == 2.0 * 3 * 5 * 7 * 11);  // 1 is widened
  for (const WorkCount& unknown : {counted("ij,jk,kl->il", {{2, 2}, {2, 2}, {2, 2}}), counted("ii->i", {{2, 2}}),
                                   counted("...i,ij->...j", {{2, 3, 4}, {4, 5}})}) {
    CHECK(unknown.operations.empty());
    CHECK(unknown.uncounted == std::vector<std::string>{"aten::einsum"});
  }
}

TEST_CASE("A recurrent network counts its matrices at every step", "[floor]") {
  v1::ProblemDescription problem;
  *problem.add_inputs() = Type("float32", {6, 3, 8});   // steps, sequences, values
  *problem.add_inputs() = Type("float32", {1, 3, 16});  // states
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{64, 8}, {64, 16}, {64}, {64}}) {
    *problem.add_parameters() = Type("float32", shape);
  }
  AddOp(&problem, "prim::ListConstruct", {"in1", "in1"}, "v0", Type("Tensor[]", {}));
  AddOp(&problem, "prim::ListConstruct", {"p0", "p1", "p2", "p3"}, "v1", Type("Tensor[]", {}));
  AddOp(&problem, "aten::lstm", {"in0", "v0", "v1", "true"}, "v2", Type("float32", {6, 3, 16}));
  problem.add_graph_outputs("v2");
  CHECK(CountWork(problem).operations.at("float32") == 2.0 * 6 * 3 * (64 * 8 + 64 * 16));
  CHECK(CountWork(problem).matrix_operations.at("float32") == CountWork(problem).operations.at("float32"));
  problem.mutable_inputs(0)->clear_shape();  // one sequence without a dimension for it: states look like weights
  problem.mutable_inputs(0)->add_shape(6);
  problem.mutable_inputs(0)->add_shape(8);
  CHECK(CountWork(problem).uncounted == std::vector<std::string>{"aten::lstm"});
}

TEST_CASE("What cannot be counted is named", "[floor]") {
  v1::ProblemDescription problem = Matmul();
  problem.mutable_graph(0)->set_kind("aten::einsum");
  const v1::FloorReport floor = FloorOf(CountWork(problem), Device(), false, false);
  CHECK(floor.source().find("not counted: aten::einsum") != std::string::npos);

  v1::ProblemDescription no_graph;
  *no_graph.add_outputs() = Type("float32", {4});
  no_graph.set_graph_error("data-dependent control flow");
  CHECK(FloorOf(CountWork(no_graph), Device(), false, false).source().find("data-dependent") != std::string::npos);
  CHECK(FloorOf(CountWork(no_graph), Device(), false, false).seconds() == 0);
}

TEST_CASE("The fraction is of the floor, for correct and timed results alone", "[floor]") {
  v1::EvaluationResult result;
  *result.mutable_device() = Device();
  result.set_verdict(v1::VERDICT_CORRECT);
  AddFloor(Matmul(), {}, /*native=*/true, &result);
  CHECK_FALSE(result.has_floor());
  result.mutable_timing()->add_baselines()->set_candidate_median_seconds(1e-6);
  AddFloor(Matmul(), {}, /*native=*/true, &result);
  CHECK(result.floor().fraction() == Approx(result.floor().seconds() / 1e-6));
  result.set_verdict(v1::VERDICT_WRONG);
  result.clear_floor();
  AddFloor(Matmul(), {}, /*native=*/true, &result);
  CHECK_FALSE(result.has_floor());
}

TEST_CASE("A claim below the floor is evidence beside the clock that contradicts it", "[floor]") {
  const auto judged = [&](const v1::DeviceInfo& device, double claimed, double slope) {
    v1::EvaluationResult result;
    *result.mutable_device() = device;
    result.set_verdict(v1::VERDICT_CHEATED);
    result.mutable_fault()->set_evidence("the clock grew otherwise");
    result.mutable_timing()->set_claimed_median_seconds(claimed);
    result.mutable_timing()->set_slope_seconds(slope);
    AddFloor(Matmul(), {}, /*native=*/true, &result);
    return result;
  };
  const double floor = FloorOf(CountWork(Matmul()), Device(), false, false).seconds();
  REQUIRE(floor > 0);
  for (const double claimed : {0.0, 0.5 * floor}) {
    const v1::EvaluationResult below = judged(Device(), claimed, 10 * floor);
    CHECK_THAT(below.fault().evidence(), Catch::Contains("the clock grew otherwise; the ") &&
                                             Catch::Contains("that it claims for a call is below the floor of"));
    CHECK(below.floor().seconds() == floor);
    CHECK(below.floor().fraction() == 0);
    CHECK(below.verdict() == v1::VERDICT_CHEATED);
  }
  // A claim that could be true, a device of which nothing is known, and a cheat that has nothing to do with the clock.
  for (const v1::EvaluationResult& other :
       {judged(Device(), floor, 10 * floor), judged({}, 0.5 * floor, 10 * floor), judged(Device(), 0, 0)}) {
    CHECK(other.fault().evidence() == "the clock grew otherwise");
    CHECK_FALSE(other.has_floor());
  }
}

TEST_CASE("A time below the floor is said to be doubtful, one below writing the outputs is none", "[floor]") {
  v1::ProblemDescription problem;
  *problem.add_inputs() = Type("float32", {1 << 20});
  *problem.add_outputs() = Type("float32", {1 << 20});
  AddOp(&problem, "aten::relu", {"in0"}, "v0", Type("float32", {1 << 20}));
  problem.add_graph_outputs("v0");
  const double written = 4.0 * (1 << 20) / 1e12;  // a call's outputs at the bandwidth; its inputs take as long
  const auto judged = [&](double seconds, int64_t cache) {
    v1::EvaluationResult result;
    *result.mutable_device() = Device();
    result.mutable_device()->set_l2_bytes(cache);
    result.set_verdict(v1::VERDICT_CORRECT);
    result.mutable_timing()->set_calls_per_sample(100);
    result.mutable_timing()->add_baselines()->set_candidate_median_seconds(seconds);
    AddFloor(problem, {}, /*native=*/true, &result);
    return result;
  };
  CHECK(judged(2.1 * written, 1 << 20).floor().source().find("not true") == std::string::npos);
  const v1::EvaluationResult doubtful = judged(1.2 * written, 1 << 20);
  CHECK(doubtful.verdict() == v1::VERDICT_CORRECT);
  CHECK(doubtful.floor().source().find("or the time is not true") != std::string::npos);
  const v1::EvaluationResult impossible = judged(0.3 * written, 1 << 20);
  CHECK(impossible.verdict() == v1::VERDICT_UNMEASURABLE);
  CHECK(impossible.fault().evidence().find("writing its outputs alone") != std::string::npos);
  // What a cache holds needs not be in memory.
  CHECK(judged(0.3 * written, 1 << 28).verdict() == v1::VERDICT_CORRECT);
}

}  // namespace
}  // namespace grove::worker
