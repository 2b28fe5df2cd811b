// A small HTTP/1.1 server on 127.0.0.1 that answers as a test wants, and misbehaves as a test wants.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace grove::testing {

struct HttpReply {
  enum class Manner {
    kAnswer,       // as HTTP wants it
    kSilence,      // reads the request and says nothing until the client goes away
    kStallInBody,  // promises the whole body, sends half, says no more until the client goes away
    kDrip,         // one byte of the body, then blanks every millisecond until the client goes away
    kCutOff,       // promises the whole body, sends half, closes
    kClose,        // closes without a word
    kRaw,          // sends `body` as it is in place of an HTTP answer, and closes
  };
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  Manner manner = Manner::kAnswer;
};

struct HttpRecord {
  std::string method;
  std::string path;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

// Thread-safe. One thread accepts, one serves each connection; the destructor ends and joins them all.
class HttpServer {
 public:
  HttpServer();
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const { return port_; }
  std::string base_url() const;  // "http://127.0.0.1:PORT/v1"

  // Replies are used up in order; then the handler is asked; without one the answer is 500.
  void Queue(HttpReply reply);
  void Handle(std::function<HttpReply(const HttpRecord&)> handler);
  // Called when a request has been read, before it is answered.
  void OnRequest(std::function<void()> callback);

  std::vector<HttpRecord> requests() const;

 private:
  void Accept();
  void Serve(int fd);
  // Waits so long for the client to go away or for the end of the server. True = it is over.
  bool Over(int fd, int millis);

  int listen_fd_ = -1;
  int stop_fd_ = -1;
  int port_ = 0;
  std::thread acceptor_;
  mutable std::mutex mu_;
  std::deque<HttpReply> queue_;
  std::function<HttpReply(const HttpRecord&)> handler_;
  std::function<void()> on_request_;
  std::vector<HttpRecord> requests_;
  std::vector<std::thread> connections_;
};

// {"choices":[{"message":{"content":...}}],"usage":{...}} with `text` as the answer.
HttpReply ChatReply(const std::string& text);

}  // namespace grove::testing
