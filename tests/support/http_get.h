// One HTTP request over a plain socket, and promtool.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace grove::testing {

struct HttpAnswer {
  int code = 0;  // 0 = no answer
  std::string headers, body;
};

// `address` is "127.0.0.1:port".
inline HttpAnswer HttpGet(const std::string& address, const std::string& path, const std::string& method = "GET") {
  HttpAnswer answer;
  const std::size_t colon = address.rfind(':');
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(colon + 1))));
  inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return answer;
  timeval patience{60, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0) {
    const std::string request = method + " " + path + " HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
    std::string text;
    if (write(fd, request.data(), request.size()) == static_cast<ssize_t>(request.size())) {
      char chunk[65536];
      for (ssize_t n; (n = read(fd, chunk, sizeof(chunk))) > 0;) text.append(chunk, static_cast<std::size_t>(n));
    }
    const std::size_t end = text.find("\r\n\r\n");
    if (end != std::string::npos && std::sscanf(text.c_str(), "HTTP/1.1 %d", &answer.code) == 1) {
      answer.headers = text.substr(0, end);
      answer.body = text.substr(end + 4);
    }
  }
  close(fd);
  return answer;
}

// What `promtool check metrics` complains about, "" when it is content. "promtool is missing" when it is.
inline std::string PromtoolComplaints(const std::string& page, const std::string& scratch_file) {
  if (FILE* file = std::fopen(scratch_file.c_str(), "w")) {
    std::fwrite(page.data(), 1, page.size(), file);
    std::fclose(file);
  }
  FILE* pipe = popen(("promtool check metrics < '" + scratch_file + "' 2>&1").c_str(), "r");
  if (pipe == nullptr) return "promtool cannot be started";
  std::string output;
  char chunk[4096];
  while (std::fgets(chunk, sizeof(chunk), pipe) != nullptr) output += chunk;
  const int status = pclose(pipe);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) return "promtool is missing";
  if (status != 0 && output.empty()) return "promtool failed without a word";
  return output;
}

}  // namespace grove::testing
