// The store on one machine's disk: DIR/journal.db (SQLite, WAL, synchronous=FULL), DIR/blobs/ab/abcdef... and DIR/lock.
//
// Blobs are compressed with zlib (level 1: sources and logs shrink 3 to 6 times at over 100 MB/s). Those that take at
// most 32 KiB compressed are rows of the journal, so that a thousand submitted candidates cost one fsync and not two
// thousand; larger ones are files, written under another name, fsynced and renamed before the transaction that names
// them (SQLite's own measurements put the break-even of rows against files between 20 and 100 KB).
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/store/store.h"

namespace grove::store {

// Schema of the data folder. A folder of a newer schema is refused; an older one is migrated when there is one.
inline constexpr int kSchemaVersion = 1;

// Opens or creates the data folder and locks it until the store is destroyed. FAILED_PRECONDITION: another coordinator
// has it, or it was written by a newer version; DATA_LOSS: journal.db is damaged; else the cause from the system.
absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const std::string& data_dir);

}  // namespace grove::store
