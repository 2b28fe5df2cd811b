// Good kernels kept across searches, by kind of operation and device.
//
// Holds the entries without their sources (those are blobs) and says which rows of the store a change touches; whoever
// drives it commits them. Owned by one thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/store/store.h"
#include "grove/v1/tree.pb.h"

namespace grove::bank {

// Kernels kept per operation and device. 8: a prompt shows at most 3, and a search starts from as many; the rest is for
// diversity. What was added by hand is never pushed out by a search.
inline constexpr size_t kKeep = 8;

struct Entry {
  v1::BankEntry entry;  // source empty
  std::string source_sha256;
};

class Bank {
 public:
  // DATA_LOSS: a row cannot be understood.
  absl::Status Load(const std::vector<store::BankRow>& rows);

  // Adds an entry that has an id. One with the same source, operation and device is already there: the better of the
  // two stays. The worst of a search's entries beyond kKeep go. Changes are added to `batch`; the answer is the id
  // under which that source now stands, empty when it was not good enough to stay.
  std::string Add(Entry entry, store::WriteBatch* batch);
  bool Remove(const std::string& id, store::WriteBatch* batch);

  // By exact id or unique prefix of at least 3 characters. NOT_FOUND, INVALID_ARGUMENT (ambiguous).
  absl::StatusOr<const Entry*> Find(const std::string& id) const;
  // Best first (lower bound of the interval); an empty operation and an unspecified device mean all.
  std::vector<const Entry*> List(const std::string& operation, v1::DeviceKind device) const;
  // Best first, those of the same architecture before others.
  std::vector<const Entry*> Top(const std::string& operation, v1::DeviceKind device, const std::string& arch,
                                size_t count) const;

 private:
  std::map<std::string, Entry> entries_;
};

}  // namespace grove::bank
