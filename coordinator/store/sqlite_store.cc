#include "coordinator/store/sqlite_store.h"

#include <sqlite3.h>
#include <zlib.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/hash.h"
#include "common/base/status_macros.h"

namespace grove::store {
namespace {

constexpr int64_t kMaxRowBlobBytes = 32 << 10;  // see the header
constexpr int kBusyMillis = 5000;               // somebody looks at the journal with another program
constexpr size_t kBlobHeaderBytes = 8;          // uncompressed size, little endian

constexpr char kSchema[] = R"sql(
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE events(seq INTEGER PRIMARY KEY, job TEXT NOT NULL, kind INTEGER NOT NULL, time_unix_nanos INTEGER NOT NULL,
                    payload BLOB NOT NULL);
CREATE INDEX events_by_job ON events(job, seq);
CREATE TABLE jobs(number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, idempotency_key TEXT NOT NULL UNIQUE,
                  created_unix_nanos INTEGER NOT NULL, ended INTEGER NOT NULL, summary BLOB NOT NULL);
CREATE TABLE bank(id TEXT PRIMARY KEY, operation TEXT NOT NULL, device INTEGER NOT NULL, payload BLOB NOT NULL,
                  source_sha256 TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE blobs(sha256 TEXT PRIMARY KEY, data BLOB, file_bytes INTEGER NOT NULL);
)sql";

absl::Status SqliteError(sqlite3* db, absl::string_view what) {
  const int code = sqlite3_extended_errcode(db);
  std::string message = absl::StrCat(what, ": ", sqlite3_errmsg(db), " (SQLite ", code, ")");
  switch (code & 0xff) {
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(absl::StrCat(message, "; the disk is full: free some space"));
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(absl::StrCat(message, "; restore the data folder from a copy, or use another --data"));
    case SQLITE_CONSTRAINT:
      return absl::AlreadyExistsError(message);
    default:
      return absl::UnavailableError(message);
  }
}

// One prepared statement, reset after each use.
class Statement {
 public:
  Statement() = default;
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  absl::Status Prepare(sqlite3* db, const char* sql) {
    db_ = db;
    if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement_, nullptr) != SQLITE_OK) {
      return SqliteError(db, absl::StrCat("cannot prepare ", sql));
    }
    return absl::OkStatus();
  }
  // The bound memory must live until Reset.
  Statement& Text(int index, absl::string_view value) {
    sqlite3_bind_text(statement_, index, value.data() ? value.data() : "", static_cast<int>(value.size()),
                      SQLITE_STATIC);
    return *this;
  }
  Statement& Blob(int index, absl::string_view value) {
    sqlite3_bind_blob(statement_, index, value.data() ? value.data() : "", static_cast<int>(value.size()),
                      SQLITE_STATIC);
    return *this;
  }
  Statement& Null(int index) {
    sqlite3_bind_null(statement_, index);
    return *this;
  }
  Statement& Int(int index, int64_t value) {
    sqlite3_bind_int64(statement_, index, value);
    return *this;
  }
  int Step() { return sqlite3_step(statement_); }
  absl::Status Run(absl::string_view what) {
    const int code = Step();
    absl::Status status = code == SQLITE_DONE || code == SQLITE_ROW ? absl::OkStatus() : SqliteError(db_, what);
    Reset();
    return status;
  }
  void Reset() {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
  }
  int64_t ColumnInt(int column) const { return sqlite3_column_int64(statement_, column); }
  bool ColumnIsNull(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  absl::string_view Column(int column) const {
    const void* data = sqlite3_column_blob(statement_, column);
    const int size = sqlite3_column_bytes(statement_, column);
    return data == nullptr ? absl::string_view() : absl::string_view(static_cast<const char*>(data), size);
  }

 private:
  sqlite3* db_ = nullptr;
  sqlite3_stmt* statement_ = nullptr;
};

class ResetAtEnd {
 public:
  explicit ResetAtEnd(Statement& statement) : statement_(statement) {}
  ~ResetAtEnd() { statement_.Reset(); }

 private:
  Statement& statement_;
};

absl::StatusOr<std::string> Compress(absl::string_view content) {
  uLongf bound = compressBound(content.size());
  std::string out(kBlobHeaderBytes + bound, '\0');
  for (size_t i = 0; i < kBlobHeaderBytes; ++i) {
    out[i] = static_cast<char>((static_cast<uint64_t>(content.size()) >> (8 * i)) & 0xff);
  }
  const int code = compress2(reinterpret_cast<Bytef*>(out.data() + kBlobHeaderBytes), &bound,
                             reinterpret_cast<const Bytef*>(content.data()), content.size(), 1);
  if (code != Z_OK) return absl::ResourceExhaustedError(absl::StrCat("zlib cannot compress a blob: ", code));
  out.resize(kBlobHeaderBytes + bound);
  return out;
}

absl::StatusOr<std::string> Decompress(absl::string_view data, const std::string& sha256) {
  const absl::Status damaged =
      absl::DataLossError(absl::StrCat("blob ", sha256, " is damaged on disk; restore the data folder from a copy"));
  if (data.size() < kBlobHeaderBytes) return damaged;
  uint64_t size = 0;
  for (size_t i = 0; i < kBlobHeaderBytes; ++i) size |= uint64_t{static_cast<unsigned char>(data[i])} << (8 * i);
  if (size > static_cast<uint64_t>(kMaxBlobBytes)) return damaged;
  std::string out(size, '\0');
  uLongf got = size;
  const int code =
      uncompress(reinterpret_cast<Bytef*>(out.data()), &got,
                 reinterpret_cast<const Bytef*>(data.data() + kBlobHeaderBytes), data.size() - kBlobHeaderBytes);
  if (code != Z_OK || got != size || Sha256Hex(out) != sha256) return damaged;
  return out;
}

class SqliteStore : public Store {
 public:
  explicit SqliteStore(std::string data_dir) : dir_(std::move(data_dir)) {}
  ~SqliteStore() override;

  absl::Status Open();

  absl::Status Commit(const WriteBatch& batch) override;
  absl::Status ReadEvents(const std::string& job, uint64_t after_seq, int64_t max,
                          const std::function<bool(uint64_t, absl::string_view)>& visit) override;
  absl::StatusOr<std::string> ReadEvent(uint64_t seq) override;
  absl::StatusOr<std::vector<JobRow>> ReadJobs() override;
  absl::StatusOr<std::vector<BankRow>> ReadBank() override;
  absl::StatusOr<std::string> ReadBlob(const std::string& sha256) override;
  absl::StatusOr<uint64_t> LastSeq() override;
  int64_t SizeBytes() override;

 private:
  absl::Status Exec(const char* sql);
  absl::StatusOr<int64_t> ScalarInt(const char* sql);
  absl::Status CheckSchema();
  absl::Status WriteRows(const WriteBatch& batch);
  absl::Status WriteEvent(const EventRow& event);
  absl::Status WriteBlob(const BlobWrite& blob);
  std::string BlobPath(const std::string& sha256) const {
    return absl::StrCat(dir_, "/blobs/", sha256.substr(0, 2), "/", sha256);
  }

  const std::string dir_;
  std::unique_ptr<FileLock> lock_;
  sqlite3* db_ = nullptr;
  struct Statements {
    Statement insert_event, read_event, put_job, put_blob, has_blob, read_blob, put_bank, remove_bank;
  };
  std::unique_ptr<Statements> statements_;  // finalised before the database is closed
  int64_t file_bytes_ = 0;                  // of blobs that are files
  int64_t batch_file_bytes_ = 0;
};

SqliteStore::~SqliteStore() {
  statements_.reset();
  sqlite3_close(db_);
}

absl::Status SqliteStore::Exec(const char* sql) {
  if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    return SqliteError(db_, absl::StrCat(dir_, "/journal.db"));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> SqliteStore::ScalarInt(const char* sql) {
  Statement statement;
  GROVE_RETURN_IF_ERROR(statement.Prepare(db_, sql));
  const int code = statement.Step();
  if (code == SQLITE_DONE) return 0;
  if (code != SQLITE_ROW) return SqliteError(db_, sql);
  return statement.ColumnInt(0);
}

absl::Status SqliteStore::CheckSchema() {
  GROVE_ASSIGN_OR_RETURN(const int64_t tables, ScalarInt("SELECT count(*) FROM sqlite_master WHERE type = 'table'"));
  if (tables == 0) {
    GROVE_RETURN_IF_ERROR(Exec("BEGIN IMMEDIATE"));
    GROVE_RETURN_IF_ERROR(Exec(kSchema));
    GROVE_RETURN_IF_ERROR(
        Exec(absl::StrCat("INSERT INTO meta VALUES('schema_version', '", kSchemaVersion, "')").c_str()));
    return Exec("COMMIT");
  }
  GROVE_ASSIGN_OR_RETURN(const int64_t ours,
                         ScalarInt("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'meta'"));
  const int64_t version = ours == 0 ? 0 : ScalarInt("SELECT value FROM meta WHERE key = 'schema_version'").value_or(0);
  if (version == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(dir_, "/journal.db is not a journal of grove; use another --data folder"));
  }
  if (version > kSchemaVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the data folder ", dir_, " was written by a newer grove (schema ", version, "; this version knows up to ",
        kSchemaVersion, "): run that version, or use another --data folder"));
  }
  return absl::OkStatus();
}

absl::Status SqliteStore::Open() {
  GROVE_RETURN_IF_ERROR(MakeDirs(absl::StrCat(dir_, "/blobs")));
  auto lock = FileLock::Acquire(absl::StrCat(dir_, "/lock"));
  if (absl::IsFailedPrecondition(lock.status())) {
    return absl::FailedPreconditionError(
        absl::StrCat("another coordinator uses the data folder ", dir_, ": stop it, or use another --data folder"));
  }
  if (!lock.ok()) return lock.status();
  lock_ = std::move(lock).value();
  const std::string path = absl::StrCat(dir_, "/journal.db");
  if (sqlite3_open_v2(path.c_str(), &db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr) !=
      SQLITE_OK) {
    return SqliteError(db_, absl::StrCat("cannot open ", path));
  }
  sqlite3_extended_result_codes(db_, 1);
  sqlite3_busy_timeout(db_, kBusyMillis);
  // The schema is looked at before anything is changed: a newer folder stays as it is.
  GROVE_RETURN_IF_ERROR(CheckSchema());
  // FULL: each commit is fsynced. 8 MiB of cache bound the memory; the WAL file is cut back to 16 MiB after a burst.
  GROVE_RETURN_IF_ERROR(
      Exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -8192;"
           "PRAGMA temp_store = MEMORY; PRAGMA journal_size_limit = 16777216;"));
  statements_ = std::make_unique<Statements>();
  Statements& s = *statements_;
  GROVE_RETURN_IF_ERROR(s.insert_event.Prepare(
      db_, "INSERT INTO events(seq, job, kind, time_unix_nanos, payload) VALUES(?1, ?2, ?3, ?4, ?5)"));
  GROVE_RETURN_IF_ERROR(s.read_event.Prepare(db_, "SELECT payload FROM events WHERE seq = ?1"));
  GROVE_RETURN_IF_ERROR(s.put_job.Prepare(
      db_,
      "INSERT INTO jobs(id, idempotency_key, created_unix_nanos, ended, summary) VALUES(?1, ?2, ?3, ?4, ?5) "
      "ON CONFLICT(id) DO UPDATE SET ended = excluded.ended, summary = excluded.summary"));
  GROVE_RETURN_IF_ERROR(
      s.put_blob.Prepare(db_, "INSERT OR IGNORE INTO blobs(sha256, data, file_bytes) VALUES(?1, ?2, ?3)"));
  GROVE_RETURN_IF_ERROR(s.has_blob.Prepare(db_, "SELECT 1 FROM blobs WHERE sha256 = ?1"));
  GROVE_RETURN_IF_ERROR(s.read_blob.Prepare(db_, "SELECT data FROM blobs WHERE sha256 = ?1"));
  GROVE_RETURN_IF_ERROR(
      s.put_bank.Prepare(db_,
                         "INSERT INTO bank(id, operation, device, payload, source_sha256) VALUES(?1, ?2, ?3, ?4, ?5) "
                         "ON CONFLICT(id) DO UPDATE SET operation = excluded.operation, device = excluded.device, "
                         "payload = excluded.payload, source_sha256 = excluded.source_sha256"));
  GROVE_RETURN_IF_ERROR(s.remove_bank.Prepare(db_, "DELETE FROM bank WHERE id = ?1"));
  GROVE_ASSIGN_OR_RETURN(file_bytes_, ScalarInt("SELECT coalesce(sum(file_bytes), 0) FROM blobs WHERE data IS NULL"));
  return absl::OkStatus();
}

absl::Status SqliteStore::Commit(const WriteBatch& batch) {
  if (batch.empty()) return absl::OkStatus();
  batch_file_bytes_ = 0;
  if (absl::Status status = Exec("BEGIN IMMEDIATE"); !status.ok()) return status;
  absl::Status status = WriteRows(batch);
  if (status.ok()) status = Exec("COMMIT");
  if (!status.ok()) {
    if (!sqlite3_get_autocommit(db_)) sqlite3_exec(db_, "ROLLBACK", nullptr, nullptr, nullptr);
    return status;
  }
  file_bytes_ += batch_file_bytes_;
  return absl::OkStatus();
}

absl::Status SqliteStore::WriteRows(const WriteBatch& batch) {
  Statements& s = *statements_;
  for (const BlobWrite& blob : batch.blobs) GROVE_RETURN_IF_ERROR(WriteBlob(blob));
  for (const EventRow& event : batch.events) GROVE_RETURN_IF_ERROR(WriteEvent(event));
  for (const JobRow& job : batch.jobs) {
    GROVE_RETURN_IF_ERROR(s.put_job.Text(1, job.id)
                              .Text(2, job.idempotency_key)
                              .Int(3, job.created_unix_nanos)
                              .Int(4, job.ended ? 1 : 0)
                              .Blob(5, job.summary)
                              .Run("cannot store a job"));
  }
  for (const std::string& id : batch.bank_remove) {
    GROVE_RETURN_IF_ERROR(s.remove_bank.Text(1, id).Run("cannot remove a bank entry"));
  }
  for (const BankRow& row : batch.bank_put) {
    GROVE_RETURN_IF_ERROR(s.put_bank.Text(1, row.id)
                              .Text(2, row.operation)
                              .Int(3, row.device)
                              .Blob(4, row.payload)
                              .Text(5, row.source_sha256)
                              .Run("cannot store a bank entry"));
  }
  return absl::OkStatus();
}

absl::Status SqliteStore::WriteEvent(const EventRow& event) {
  absl::Status status = statements_->insert_event.Int(1, static_cast<int64_t>(event.seq))
                            .Text(2, event.job)
                            .Int(3, event.kind)
                            .Int(4, event.time_unix_nanos)
                            .Blob(5, event.payload)
                            .Run("cannot append to the journal");
  if (!absl::IsAlreadyExists(status)) return status;
  // The batch was stored before, and the answer got lost. Another event under this number would be a bug of ours.
  GROVE_ASSIGN_OR_RETURN(const std::string stored, ReadEvent(event.seq));
  if (stored == event.payload) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the journal has another event ", event.seq, " than the one to be written"));
}

absl::Status SqliteStore::WriteBlob(const BlobWrite& blob) {
  if (static_cast<int64_t>(blob.content.size()) > kMaxBlobBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a blob of ", blob.content.size(), " bytes; at most ", kMaxBlobBytes, " are stored"));
  }
  if (!IsSha256Hex(blob.sha256)) return absl::InvalidArgumentError("a blob without its SHA-256");
  {
    ResetAtEnd reset(statements_->has_blob);
    const int code = statements_->has_blob.Text(1, blob.sha256).Step();
    if (code == SQLITE_ROW) return absl::OkStatus();
    if (code != SQLITE_DONE) return SqliteError(db_, "cannot look for a blob");
  }
  GROVE_ASSIGN_OR_RETURN(const std::string packed, Compress(blob.content));
  if (static_cast<int64_t>(packed.size()) <= kMaxRowBlobBytes) {
    return statements_->put_blob.Text(1, blob.sha256).Blob(2, packed).Int(3, 0).Run("cannot store a blob");
  }
  const std::string path = BlobPath(blob.sha256);
  GROVE_RETURN_IF_ERROR(MakeDirs(path.substr(0, path.rfind('/'))));
  GROVE_RETURN_IF_ERROR(WriteFileAtomically(path, packed));
  GROVE_RETURN_IF_ERROR(statements_->put_blob.Text(1, blob.sha256)
                            .Null(2)
                            .Int(3, static_cast<int64_t>(packed.size()))
                            .Run("cannot store a blob"));
  batch_file_bytes_ += static_cast<int64_t>(packed.size());
  return absl::OkStatus();
}

absl::Status SqliteStore::ReadEvents(const std::string& job, uint64_t after_seq, int64_t max,
                                     const std::function<bool(uint64_t, absl::string_view)>& visit) {
  // A statement of its own, because `visit` may read too.
  Statement statement;
  GROVE_RETURN_IF_ERROR(
      statement.Prepare(db_, "SELECT seq, payload FROM events WHERE job = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3"));
  statement.Text(1, job).Int(2, static_cast<int64_t>(after_seq)).Int(3, max > 0 ? max : -1);
  for (;;) {
    const int code = statement.Step();
    if (code == SQLITE_DONE) return absl::OkStatus();
    if (code != SQLITE_ROW) return SqliteError(db_, "cannot read the journal");
    if (!visit(static_cast<uint64_t>(statement.ColumnInt(0)), statement.Column(1))) return absl::OkStatus();
  }
}

absl::StatusOr<std::string> SqliteStore::ReadEvent(uint64_t seq) {
  Statement& statement = statements_->read_event;
  ResetAtEnd reset(statement);
  const int code = statement.Int(1, static_cast<int64_t>(seq)).Step();
  if (code == SQLITE_DONE) return absl::NotFoundError(absl::StrCat("the journal has no event ", seq));
  if (code != SQLITE_ROW) return SqliteError(db_, "cannot read the journal");
  return std::string(statement.Column(0));
}

absl::StatusOr<std::vector<JobRow>> SqliteStore::ReadJobs() {
  Statement statement;
  GROVE_RETURN_IF_ERROR(statement.Prepare(
      db_, "SELECT id, idempotency_key, created_unix_nanos, ended, summary FROM jobs ORDER BY number"));
  std::vector<JobRow> rows;
  for (;;) {
    const int code = statement.Step();
    if (code == SQLITE_DONE) return rows;
    if (code != SQLITE_ROW) return SqliteError(db_, "cannot read the jobs");
    JobRow row;
    row.id = std::string(statement.Column(0));
    row.idempotency_key = std::string(statement.Column(1));
    row.created_unix_nanos = statement.ColumnInt(2);
    row.ended = statement.ColumnInt(3) != 0;
    row.summary = std::string(statement.Column(4));
    rows.push_back(std::move(row));
  }
}

absl::StatusOr<std::vector<BankRow>> SqliteStore::ReadBank() {
  Statement statement;
  GROVE_RETURN_IF_ERROR(
      statement.Prepare(db_, "SELECT id, operation, device, payload, source_sha256 FROM bank ORDER BY id"));
  std::vector<BankRow> rows;
  for (;;) {
    const int code = statement.Step();
    if (code == SQLITE_DONE) return rows;
    if (code != SQLITE_ROW) return SqliteError(db_, "cannot read the bank");
    BankRow row;
    row.id = std::string(statement.Column(0));
    row.operation = std::string(statement.Column(1));
    row.device = static_cast<int>(statement.ColumnInt(2));
    row.payload = std::string(statement.Column(3));
    row.source_sha256 = std::string(statement.Column(4));
    rows.push_back(std::move(row));
  }
}

absl::StatusOr<std::string> SqliteStore::ReadBlob(const std::string& sha256) {
  if (!IsSha256Hex(sha256)) {
    return absl::InvalidArgumentError("an artifact is named by 64 lower-case hexadecimal digits");
  }
  Statement& statement = statements_->read_blob;
  ResetAtEnd reset(statement);
  const int code = statement.Text(1, sha256).Step();
  if (code == SQLITE_DONE) return absl::NotFoundError(absl::StrCat("there is no artifact ", sha256));
  if (code != SQLITE_ROW) return SqliteError(db_, "cannot read a blob");
  if (!statement.ColumnIsNull(0)) return Decompress(statement.Column(0), sha256);
  absl::StatusOr<std::string> packed = ReadFile(BlobPath(sha256), kMaxBlobBytes + (kMaxBlobBytes >> 4));
  if (absl::IsNotFound(packed.status())) {
    return absl::DataLossError(
        absl::StrCat("the file of blob ", sha256, " is gone; restore the data folder from a copy"));
  }
  if (!packed.ok()) return packed.status();
  return Decompress(*packed, sha256);
}

absl::StatusOr<uint64_t> SqliteStore::LastSeq() {
  GROVE_ASSIGN_OR_RETURN(const int64_t last, ScalarInt("SELECT coalesce(max(seq), 0) FROM events"));
  return static_cast<uint64_t>(last);
}

int64_t SqliteStore::SizeBytes() {
  const int64_t pages = ScalarInt("PRAGMA page_count").value_or(0);
  const int64_t page = ScalarInt("PRAGMA page_size").value_or(0);
  return pages * page + file_bytes_;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const std::string& data_dir) {
  auto store = std::make_unique<SqliteStore>(data_dir);
  GROVE_RETURN_IF_ERROR(store->Open());
  return store;
}

}  // namespace grove::store
