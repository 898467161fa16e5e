// Results of points of a sweep, by the hash of their resolved scenario: identical points are simulated once.
//
// Shared by threads. The first request for a hash computes the payload, the others wait for it. The cache is
// bounded: beyond its size a point may be simulated twice, with the same result.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace stagecraft {

class PayloadCache {
 public:
  explicit PayloadCache(std::size_t most_bytes = std::size_t{64} << 20) : room_(most_bytes) {}

  // The payload of `hash`, from `make` when it is not cached. Exceptions of `make` are passed on, and the
  // next request tries again.
  [[nodiscard]] std::string get(const std::string& hash, const std::function<std::string()>& make);
  // Known from a former run.
  void put(const std::string& hash, const std::string& payload);

  [[nodiscard]] std::size_t reused() const;  // number of calls of get() without `make`

 private:
  void keep(const std::string& hash, const std::string& payload);

  mutable std::mutex mutex_;
  std::condition_variable made_;
  std::unordered_map<std::string, std::optional<std::string>> payloads_;  // nullopt: being made
  std::size_t room_;
  std::size_t reused_ = 0;
};

}  // namespace stagecraft
