// What bubblewrap is told for every sandbox.
#pragma once

#include <string>
#include <vector>

namespace grove::sandbox {

// The namespaces, no capabilities, and, in a user namespace, the user inside.
std::vector<std::string> NamespaceArgs(bool user_namespace);
// The folders and devices that every program needs, /proc with nothing to write to.
void AddSystem(std::vector<std::string>* args);

}  // namespace grove::sandbox
