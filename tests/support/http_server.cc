#include "tests/support/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace grove::testing {
namespace {

bool SendAll(int fd, const std::string& data) {
  size_t sent = 0;
  while (sent < data.size()) {
    const ssize_t n = send(fd, data.data() + sent, data.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return false;
    sent += static_cast<size_t>(n);
  }
  return true;
}

std::string Head(const HttpReply& reply) {
  std::string head = "HTTP/1.1 " + std::to_string(reply.status) + " Status\r\nContent-Type: " + reply.content_type +
                     "\r\nContent-Length: " + std::to_string(reply.body.size()) + "\r\nConnection: close\r\n";
  for (const auto& [name, value] : reply.headers) head += name + ": " + value + "\r\n";
  return head + "\r\n";
}

}  // namespace

HttpServer::HttpServer() {
  listen_fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  stop_fd_ = eventfd(0, EFD_CLOEXEC);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  if (listen_fd_ < 0 || stop_fd_ < 0 || bind(listen_fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(listen_fd_, 64) != 0 || getsockname(listen_fd_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    throw std::runtime_error("cannot listen on 127.0.0.1");
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

HttpServer::~HttpServer() {
  const uint64_t one = 1;
  if (write(stop_fd_, &one, sizeof(one)) < 0) std::abort();  // never read, so every poll sees it
  acceptor_.join();
  for (std::thread& connection : connections_) connection.join();
  close(listen_fd_);
  close(stop_fd_);
}

std::string HttpServer::base_url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/v1"; }

void HttpServer::Queue(HttpReply reply) {
  std::lock_guard<std::mutex> lock(mu_);
  queue_.push_back(std::move(reply));
}

void HttpServer::Handle(std::function<HttpReply(const HttpRecord&)> handler) {
  std::lock_guard<std::mutex> lock(mu_);
  handler_ = std::move(handler);
}

void HttpServer::OnRequest(std::function<void()> callback) {
  std::lock_guard<std::mutex> lock(mu_);
  on_request_ = std::move(callback);
}

std::vector<HttpRecord> HttpServer::requests() const {
  std::lock_guard<std::mutex> lock(mu_);
  return requests_;
}

void HttpServer::Accept() {
  while (true) {
    pollfd fds[2] = {{listen_fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}};
    if (poll(fds, 2, -1) < 0) continue;
    if (fds[1].revents != 0) return;
    const int fd = accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    std::lock_guard<std::mutex> lock(mu_);
    connections_.emplace_back([this, fd] {
      Serve(fd);
      close(fd);
    });
  }
}

bool HttpServer::Over(int fd, int millis) {
  pollfd fds[2] = {{fd, POLLIN | POLLRDHUP, 0}, {stop_fd_, POLLIN, 0}};
  return poll(fds, 2, millis) > 0;
}

void HttpServer::Serve(int fd) {
  std::string data;
  size_t head_end = std::string::npos;
  size_t length = 0;
  HttpRecord record;
  while (head_end == std::string::npos || data.size() < head_end + 4 + length) {
    pollfd fds[2] = {{fd, POLLIN, 0}, {stop_fd_, POLLIN, 0}};
    if (poll(fds, 2, -1) < 0) continue;
    if (fds[1].revents != 0) return;
    char buffer[16384];
    const ssize_t n = recv(fd, buffer, sizeof(buffer), 0);
    if (n <= 0) return;
    data.append(buffer, static_cast<size_t>(n));
    if (head_end != std::string::npos) continue;
    head_end = data.find("\r\n\r\n");
    if (head_end == std::string::npos) continue;
    size_t line = data.find("\r\n");
    const std::string first = data.substr(0, line);
    record.method = first.substr(0, first.find(' '));
    record.path = first.substr(record.method.size() + 1, first.rfind(' ') - record.method.size() - 1);
    while (line < head_end) {
      const size_t begin = line + 2;
      line = data.find("\r\n", begin);
      const std::string header = data.substr(begin, line - begin);
      const size_t colon = header.find(':');
      if (colon == std::string::npos) continue;
      std::string name = header.substr(0, colon);
      std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
      record.headers[name] = header.substr(std::min(header.find_first_not_of(' ', colon + 1), header.size()));
    }
    length = std::strtoul(record.headers["content-length"].c_str(), nullptr, 10);
  }
  record.body = data.substr(head_end + 4, length);

  HttpReply reply;
  std::function<HttpReply(const HttpRecord&)> handler;
  std::function<void()> on_request;
  {
    std::lock_guard<std::mutex> lock(mu_);
    requests_.push_back(record);
    on_request = on_request_;
    if (!queue_.empty()) {
      reply = std::move(queue_.front());
      queue_.pop_front();
    } else if (handler_) {
      handler = handler_;
    } else {
      reply.status = 500;
      reply.body = R"({"error":{"message":"the test queued no reply"}})";
    }
  }
  if (on_request) on_request();
  if (handler) reply = handler(record);

  const std::string half = reply.body.substr(0, reply.body.size() / 2);
  switch (reply.manner) {
    case HttpReply::Manner::kAnswer:
      SendAll(fd, Head(reply) + reply.body);
      break;
    case HttpReply::Manner::kSilence:
      Over(fd, -1);
      break;
    case HttpReply::Manner::kStallInBody:
      if (SendAll(fd, Head(reply) + half)) Over(fd, -1);
      break;
    case HttpReply::Manner::kDrip: {
      // No length: the body lasts as long as the connection.
      bool alive = SendAll(fd, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{");
      while (alive && !Over(fd, 1)) alive = SendAll(fd, std::string(16, ' '));
      break;
    }
    case HttpReply::Manner::kCutOff:
      SendAll(fd, Head(reply) + half);
      break;
    case HttpReply::Manner::kClose:
      break;
    case HttpReply::Manner::kRaw:
      SendAll(fd, reply.body);
      break;
  }
  // Half-closed first, so that the client reads everything before it sees the end.
  shutdown(fd, SHUT_WR);
}

HttpReply ChatReply(const std::string& text) {
  HttpReply reply;
  const nlohmann::json body = {
      {"id", "chatcmpl-1"},
      {"object", "chat.completion"},
      {"model", "test-model-2026"},
      {"choices", {{{"index", 0}, {"finish_reason", "stop"}, {"message", {{"role", "assistant"}, {"content", text}}}}}},
      {"usage", {{"prompt_tokens", 120}, {"completion_tokens", 34}, {"total_tokens", 154}}}};
  reply.body = body.dump();
  return reply;
}

}  // namespace grove::testing
