#include "coordinator/generate/operation.h"

#include <catch2/catch.hpp>
#include <limits>

#include "tests/catalogue/graph_fixture.h"

namespace grove::generate {
namespace {

using testing::LoadGraph;

TEST_CASE("Operations are recognised from traced graphs", "[operation]") {
  auto [graph, operation] = GENERATE(table<const char*, const char*>({
      {"relu", "elementwise"},
      {"gelu_by_hand", "elementwise"},
      {"long_chain", "elementwise"},
      {"bias_gelu_residual", "elementwise"},
      {"broadcast_both", "elementwise"},
      {"transposed_add", "elementwise"},
      {"batch_norm_eval", "elementwise"},
      {"softmax_last", "softmax"},
      {"softmax_middle", "softmax"},
      {"softmax_scaled", "softmax"},
      {"log_softmax", "log_softmax"},
      {"layer_norm", "layer_norm"},
      {"layer_norm_gelu", "layer_norm"},
      {"group_norm", "group_norm"},
      {"instance_norm", "instance_norm"},
      {"rms_norm_dim1", "rms_norm"},
      {"rms_norm_last", "rms_norm"},
      {"l2_norm", "l2_norm"},
      {"frobenius_norm", "l2_norm"},
      {"sum_dim", "reduce_sum"},
      {"mean_all", "reduce_mean"},
      {"mean_dims", "reduce_mean"},
      {"max_dim", "reduce_max"},
      {"amin_last", "reduce_min"},
      {"prod_dim", "reduce_prod"},
      {"logsumexp", "reduce_logsumexp"},
      {"mse_loss", "reduce_mean"},
      {"huber_loss", "reduce_mean"},
      {"smooth_l1_loss", "reduce_sum"},
      {"reduce_then_relu", "reduce_sum"},
      {"matmul", "matmul"},
      {"matmul_ta", "matmul"},
      {"matmul_3d", "matmul"},
      {"bmm", "matmul"},
      {"linear", "matmul"},
      {"einsum_4d", "matmul"},
      {"einsum_batched", "matmul"},
      {"mlp_epilogue", "matmul_epilogue"},
      {"conv2d", "conv2d"},
      {"conv2d_strided", "conv2d"},
      {"conv2d_tanh", "conv2d_epilogue"},
      {"conv1d", "conv2d"},
      {"conv1d_grouped_gelu", "conv2d_epilogue"},
      {"conv_relu_maxpool", "conv2d_relu_maxpool"},
      {"max_pool2d", "max_pool2d"},
      {"avg_pool2d", "avg_pool2d"},
      {"max_pool1d", "max_pool2d"},
      {"avg_pool1d", "avg_pool2d"},
  }));
  CAPTURE(graph);
  auto spec = Recognise(LoadGraph(graph).description);
  INFO(spec.status());
  REQUIRE(spec.ok());
  CHECK(spec->operation == operation);
  CHECK(RecogniseOperation(LoadGraph(graph).description) == operation);
}

TEST_CASE("A problem's name plays no part in the recognition", "[operation]") {
  // The same graph with every name that a person chose changed.
  auto description = LoadGraph("softmax_last").description;
  for (auto& input : *description.mutable_inputs()) input.set_name("layer_norm_weight");
  for (auto& op : *description.mutable_graph()) op.set_scope("Model/LayerNorm[matmul]");
  CHECK(RecogniseOperation(description) == "softmax");
}

TEST_CASE("What is not known is refused with what was seen and what else can be done", "[operation]") {
  auto [graph, word] = GENERATE(table<const char*, const char*>({
      {"unknown_cumsum", "aten::cumsum"},
      {"unknown_attention", "aten::matmul"},
      {"unknown_two_outputs", "2 tensors"},
      {"unknown_argmax", "int64"},
      {"unknown_chain", "operation: aten::cumsum"},
      {"unknown_einsum", "aten::einsum"},
      {"unknown_pool3d", "operation: aten::max_pool3d"},
      {"unknown_batch_norm_training", "aten::batch_norm"},
  }));
  CAPTURE(graph);
  auto spec = Recognise(LoadGraph(graph).description);
  REQUIRE(!spec.ok());
  CHECK(spec.status().code() == absl::StatusCode::kFailedPrecondition);
  const std::string message(spec.status().message());
  CHECK_THAT(message, Catch::Contains(word));
  CHECK_THAT(message, Catch::Contains("--generator openai"));
  CHECK_THAT(message, Catch::Contains("grove eval"));
  CHECK(RecogniseOperation(LoadGraph(graph).description).empty());
}

TEST_CASE("A matrix product knows its transposes by strides", "[operation]") {
  auto spec = Recognise(LoadGraph("matmul_ta").description);
  REQUIRE(spec.ok());
  CHECK(spec->matmul->m == 14);
  CHECK(spec->matmul->k == 53);
  CHECK(spec->matmul->n == 41);
  CHECK(spec->matmul->a.strides == std::vector<int64_t>{0, 1, 14});
  CHECK(spec->matmul->b.strides == std::vector<int64_t>{0, 41, 1});
}

TEST_CASE("An empty, garbled or huge graph is refused and does no harm", "[operation]") {
  v1::ProblemDescription description;
  description.set_graph_error("Tracer cannot infer type");
  CHECK_THAT(std::string(Recognise(description).status().message()), Catch::Contains("Tracer cannot infer type"));

  description = LoadGraph("softmax_last").description;
  description.mutable_graph(0)->set_inputs(0, "v999");
  CHECK(!Recognise(description).ok());
  description.mutable_graph(0)->clear_inputs();
  CHECK(!Recognise(description).ok());
  description = LoadGraph("layer_norm").description;
  for (auto& op : *description.mutable_graph()) {
    for (auto& input : *op.mutable_inputs()) input = "\"x\"";
  }
  CHECK(!Recognise(description).ok());
  description = LoadGraph("relu").description;
  for (int i = 0; i < 3000; ++i) *description.add_graph() = description.graph(0);
  CHECK(!Recognise(description).ok());
}

TEST_CASE("An infinite bound comes as text and is a number", "[operation]") {
  auto description = LoadGraph("relu").description;
  description.mutable_graph(0)->set_kind("aten::clamp");
  description.mutable_graph(0)->add_inputs("0");
  description.mutable_graph(0)->add_inputs("\"Infinity\"");
  auto spec = Recognise(description);
  REQUIRE(spec.ok());
  CHECK(spec->epilogue.nodes.back().op == "clamp");
  CHECK(spec->epilogue.nodes.back().params == std::vector<double>{0, std::numeric_limits<double>::infinity()});
}

TEST_CASE("Half precision is refused by name", "[operation]") {
  auto description = LoadGraph("softmax_last").description;
  description.mutable_inputs(0)->set_dtype("float16");
  auto spec = Recognise(description);
  REQUIRE(!spec.ok());
  CHECK_THAT(std::string(spec.status().message()), Catch::Contains("float16"));
}

}  // namespace
}  // namespace grove::generate
