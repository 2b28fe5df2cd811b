#include "coordinator/bank/bank.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace grove::bank {
namespace {

bool Better(const Entry* a, const Entry* b) {
  if (a->entry.speedup_low() != b->entry.speedup_low()) return a->entry.speedup_low() > b->entry.speedup_low();
  if (a->entry.speedup() != b->entry.speedup()) return a->entry.speedup() > b->entry.speedup();
  return a->entry.id() < b->entry.id();
}

store::BankRow RowOf(const Entry& entry) {
  store::BankRow row;
  row.id = entry.entry.id();
  row.operation = entry.entry.operation();
  row.device = entry.entry.device();
  row.payload = entry.entry.SerializeAsString();
  row.source_sha256 = entry.source_sha256;
  return row;
}

}  // namespace

absl::Status Bank::Load(const std::vector<store::BankRow>& rows) {
  for (const store::BankRow& row : rows) {
    Entry entry;
    entry.source_sha256 = row.source_sha256;
    if (!entry.entry.ParseFromString(row.payload)) {
      return absl::DataLossError(absl::StrCat("bank entry ", row.id, " cannot be understood"));
    }
    entries_[row.id] = std::move(entry);
  }
  return absl::OkStatus();
}

std::string Bank::Add(Entry entry, store::WriteBatch* batch) {
  entry.entry.mutable_candidate()->clear_source();
  for (auto& [id, other] : entries_) {
    if (other.source_sha256 != entry.source_sha256 || other.entry.operation() != entry.entry.operation() ||
        other.entry.device() != entry.entry.device()) {
      continue;
    }
    if (Better(&other, &entry)) return id;
    entry.entry.set_id(id);
    break;
  }
  const std::string id = entry.entry.id();
  const std::string operation = entry.entry.operation();
  const v1::DeviceKind device = entry.entry.device();
  batch->bank_put.push_back(RowOf(entry));
  entries_[id] = std::move(entry);

  std::vector<const Entry*> found;
  for (const Entry* one : List(operation, device)) {
    if (!one->entry.origin_job().empty()) found.push_back(one);
  }
  bool stays = true;
  for (size_t i = kKeep; i < found.size(); ++i) {
    const std::string loser = found[i]->entry.id();
    stays = stays && loser != id;
    Remove(loser, batch);
  }
  return stays ? id : "";
}

bool Bank::Remove(const std::string& id, store::WriteBatch* batch) {
  if (entries_.erase(id) == 0) return false;
  // A batch removes before it puts: an entry put and removed by the same batch must not be put.
  auto& put = batch->bank_put;
  put.erase(std::remove_if(put.begin(), put.end(), [&](const store::BankRow& row) { return row.id == id; }), put.end());
  batch->bank_remove.push_back(id);
  return true;
}

absl::StatusOr<const Entry*> Bank::Find(const std::string& id) const {
  auto exact = entries_.find(id);
  if (exact != entries_.end()) return &exact->second;
  if (id.size() >= 3) {
    auto it = entries_.lower_bound(id);
    if (it != entries_.end() && absl::StartsWith(it->first, id)) {
      auto next = std::next(it);
      if (next != entries_.end() && absl::StartsWith(next->first, id)) {
        return absl::InvalidArgumentError(
            absl::StrCat("several bank entries start with '", id, "', such as ", it->first, " and ", next->first));
      }
      return &it->second;
    }
  }
  return absl::NotFoundError(absl::StrCat("there is no bank entry '", id, "'; `grove bank list` shows what there is"));
}

std::vector<const Entry*> Bank::List(const std::string& operation, v1::DeviceKind device) const {
  std::vector<const Entry*> found;
  for (const auto& [id, entry] : entries_) {
    if (!operation.empty() && entry.entry.operation() != operation) continue;
    if (device != v1::DEVICE_KIND_UNSPECIFIED && entry.entry.device() != device) continue;
    found.push_back(&entry);
  }
  std::sort(found.begin(), found.end(), Better);
  return found;
}

std::vector<const Entry*> Bank::Top(const std::string& operation, v1::DeviceKind device, const std::string& arch,
                                    size_t count) const {
  if (operation.empty()) return {};
  std::vector<const Entry*> found = List(operation, device);
  std::stable_partition(found.begin(), found.end(), [&](const Entry* one) { return one->entry.arch() == arch; });
  if (found.size() > count) found.resize(count);
  return found;
}

}  // namespace grove::bank
