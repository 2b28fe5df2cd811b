// A libnvidia-ml.so with one GPU that does what a test tells it (fake_nvml.h): hang in a call, bring Xids, be lost,
// run at a clock, hold processes.
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {
// Never destroyed: a thread that the code under test gave up comes back from a call that hung while the program ends.
std::mutex& g_mutex = *new std::mutex;
std::condition_variable& g_changed = *new std::condition_variable;
std::string& g_hang = *new std::string;
bool g_lost = false;
std::deque<int>& g_xids = *new std::deque<int>;
auto& g_values = *new std::map<std::string, unsigned long long>;
auto& g_calls = *new std::map<std::string, int>;
std::vector<unsigned>& g_processes = *new std::vector<unsigned>;

int Enter(const char* call) {
  std::unique_lock<std::mutex> lock(g_mutex);
  ++g_calls[call];
  g_changed.wait(lock, [&] { return g_hang != call; });
  return g_lost ? 15 : 0;
}

struct Memory {
  unsigned long long total, free, used;
};
// What the test has set under this name. An entry that hangs is named so, too.
template <typename T>
int Value(const char* name, T* value) {
  if (const int code = Enter(name); code != 0) return code;
  std::lock_guard<std::mutex> lock(g_mutex);
  *value = static_cast<T>(g_values[name]);
  return 0;
}

struct ProcessInfo {  // nvmlProcessInfo_t
  unsigned pid;
  unsigned long long memory;
  unsigned gpu, compute;
};
struct EventData {
  void* device;
  unsigned long long type, data;
  unsigned gpu, compute;
};
int g_device, g_set;
}  // namespace

extern "C" {
void fake_hang(const char* call) {
  std::lock_guard<std::mutex> lock(g_mutex);
  g_hang = call;
  g_changed.notify_all();
}
void fake_lost(int lost) {
  std::lock_guard<std::mutex> lock(g_mutex);
  g_lost = lost != 0;
}
void fake_xid(int xid) {
  std::lock_guard<std::mutex> lock(g_mutex);
  g_xids.push_back(xid);
  g_changed.notify_all();
}
void fake_value(const char* name, unsigned long long value) {
  std::lock_guard<std::mutex> lock(g_mutex);
  g_values[name] = value;
}
void fake_processes(const unsigned* pids, int count) {
  std::lock_guard<std::mutex> lock(g_mutex);
  g_processes.assign(pids, pids + count);
}
int fake_calls(const char* call) {
  std::lock_guard<std::mutex> lock(g_mutex);
  return g_calls[call];
}

const char* nvmlErrorString(int code) { return code == 15 ? "GPU is lost" : "error"; }
int nvmlInit_v2() {
  const int code = Enter("init");
  return code == 15 ? 0 : code;
}
int nvmlShutdown() { return 0; }
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::snprintf(text, size, "580.1");
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 1;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned, void** device) {
  *device = &g_device;
  return Enter("handle");
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  *device = &g_device;
  return std::strcmp(uuid, "GPU-fake") == 0 ? Enter("handle") : 6;
}
int nvmlDeviceGetName(void*, char* text, unsigned size) {
  std::snprintf(text, size, "Fake GPU");
  return Enter("name");
}
int nvmlDeviceGetUUID(void*, char* text, unsigned size) {
  std::snprintf(text, size, "GPU-fake");
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
  *memory = {1ull << 34, 1ull << 33, 1ull << 33};
  return 0;
}
int nvmlDeviceGetMinorNumber(void*, unsigned* minor) {
  *minor = 3;
  return 0;
}
int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) {
  *major = 9;
  *minor = 0;
  return 0;
}
int nvmlDeviceGetClockInfo(void*, int clock, unsigned* mhz) { return Value(clock == 1 ? "sm" : "memory", mhz); }
int nvmlDeviceGetTemperature(void*, int, unsigned* celsius) { return Value("temperature", celsius); }
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) { return Value("power", milliwatts); }
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) { return Value("reasons", reasons); }
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, ProcessInfo* infos) {
  if (const int code = Enter("processes"); code != 0) return code;
  std::lock_guard<std::mutex> lock(g_mutex);
  const bool fit = *count >= g_processes.size();
  *count = static_cast<unsigned>(g_processes.size());
  for (unsigned i = 0; fit && i < *count; ++i) infos[i] = {g_processes[i], 1 << 20, 0xffffffff, 0xffffffff};
  return fit ? 0 : 7;
}
int nvmlEventSetCreate(void** set) {
  *set = &g_set;
  return 0;
}
int nvmlEventSetFree(void*) { return 0; }
int nvmlDeviceRegisterEvents(void*, unsigned long long types, void*) { return types == 8 ? 0 : 2; }
int nvmlEventSetWait_v2(void*, EventData* data, unsigned milliseconds) {
  if (int code = Enter("wait"); code != 0) return code;
  std::unique_lock<std::mutex> lock(g_mutex);
  if (!g_changed.wait_for(lock, std::chrono::milliseconds(milliseconds), [] { return !g_xids.empty(); })) return 10;
  *data = {&g_device, 8, static_cast<unsigned long long>(g_xids.front()), 0xffffffff, 0xffffffff};
  g_xids.pop_front();
  return 0;
}
}
