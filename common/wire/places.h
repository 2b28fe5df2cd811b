// The processors that OpenMP's threads are bound to: what judge and candidates have to agree upon, and what libgomp reads
// from the environment when it is loaded (OMP_PLACES: OpenMP 5.2, section 21.1.6).
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace grove::wire {

// Those that this thread, and the processes that it starts, may use, by number. {} if the kernel does not say.
std::vector<int> Processors();

// Each as a place of its own, "{0},{1}": by name, because libgomp finds none where a sandbox shows no /sys.
std::string PlacesOf(const std::vector<int>& processors);
// The same read again, after libgomp has bound the first thread to the first of them.
std::vector<int> ProcessorsOf(const char* places);

// Threads that are made otherwise than by OpenMP keep the choice of all `processors`, whatever the thread is bound to
// that makes them. False if that cannot be said.
bool FreeThreads(const std::vector<int>& processors);

// In the judge's environment: its places, where it binds its threads; libgomp's own variables may be the user's.
inline constexpr char kJudgePlaces[] = "GROVE_JUDGE_PLACES";

// What grove-judge puts into its environment before it loads libgomp, for so many threads on the CPU. Threads are bound,
// each to a processor of its own, if there is one for each of `processors`: threads that sleep between runs were woken
// on one and the same otherwise, on the candidate's side more often (docs/timing.md).
std::vector<std::pair<std::string, std::string>> JudgePlaces(int threads, const std::vector<int>& processors);

}  // namespace grove::wire
