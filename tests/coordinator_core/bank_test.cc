#include "coordinator/bank/bank.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"

namespace grove::bank {
namespace {

Entry Kernel(int number, double speedup, const std::string& job = "j-1") {
  Entry entry;
  entry.entry.set_id(absl::StrCat("b-000", number));
  entry.entry.set_operation("softmax");
  entry.entry.set_device(v1::DEVICE_KIND_CPU);
  entry.entry.set_speedup(speedup);
  entry.entry.set_speedup_low(speedup);
  entry.entry.set_origin_job(job);
  entry.source_sha256 = absl::StrCat("sha", number);
  return entry;
}

TEST_CASE("The bank keeps the best eight that searches found and all that were added by hand", "[bank]") {
  Bank bank;
  store::WriteBatch batch;
  CHECK(bank.Add(Kernel(500, 0.5, ""), &batch) == "b-000500");
  for (int i = 1; i <= 12; ++i) bank.Add(Kernel(100 + i, 1 + i), &batch);
  CHECK(bank.Add(Kernel(900, 1.01), &batch).empty());
  const auto all = bank.List("softmax", v1::DEVICE_KIND_CPU);
  REQUIRE(all.size() == kKeep + 1);
  CHECK(all[0]->entry.speedup() == 13);
  CHECK(all[7]->entry.speedup() == 6);
  CHECK(all[8]->entry.speedup() == 0.5);
  // The rows tell the same story.
  Bank again;
  std::vector<store::BankRow> rows;
  for (const store::BankRow& row : batch.bank_put) rows.push_back(row);
  REQUIRE(again.Load(rows).ok());
  CHECK(again.List("", v1::DEVICE_KIND_UNSPECIFIED).size() == all.size());
}

TEST_CASE("The same source is one entry and the better measurement stays", "[bank]") {
  Bank bank;
  store::WriteBatch batch;
  bank.Add(Kernel(1, 2), &batch);
  Entry better = Kernel(2, 3);
  better.source_sha256 = "sha1";
  CHECK(bank.Add(better, &batch) == "b-0001");
  Entry worse = Kernel(3, 1);
  worse.source_sha256 = "sha1";
  CHECK(bank.Add(worse, &batch) == "b-0001");
  REQUIRE(bank.List("", v1::DEVICE_KIND_UNSPECIFIED).size() == 1);
  CHECK(bank.List("", v1::DEVICE_KIND_UNSPECIFIED)[0]->entry.speedup() == 3);
}

TEST_CASE("Entries for the same architecture come first", "[bank]") {
  Bank bank;
  store::WriteBatch batch;
  Entry here = Kernel(1, 2);
  here.entry.set_arch("sm_89");
  bank.Add(here, &batch);
  bank.Add(Kernel(2, 9), &batch);
  const auto top = bank.Top("softmax", v1::DEVICE_KIND_CPU, "sm_89", 1);
  REQUIRE(top.size() == 1);
  CHECK(top[0]->entry.id() == "b-0001");
  CHECK(bank.Top("", v1::DEVICE_KIND_CPU, "", 3).empty());
  CHECK(bank.Top("softmax", v1::DEVICE_KIND_CUDA, "", 3).empty());
}

TEST_CASE("An entry is found by a prefix that is not ambiguous", "[bank]") {
  Bank bank;
  store::WriteBatch batch;
  bank.Add(Kernel(1, 2), &batch);
  bank.Add(Kernel(2, 2), &batch);
  CHECK(bank.Find("b-0001").ok());
  CHECK(absl::IsInvalidArgument(bank.Find("b-000").status()));
  CHECK(absl::IsNotFound(bank.Find("b-").status()));
  CHECK(bank.Remove("b-0001", &batch));
  CHECK(!bank.Remove("b-0001", &batch));
  CHECK(bank.Find("b-000").ok());
}

}  // namespace
}  // namespace grove::bank
