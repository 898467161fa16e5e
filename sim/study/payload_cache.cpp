#include "sim/study/payload_cache.hpp"

#include <utility>

namespace stagecraft {

std::string PayloadCache::get(const std::string& hash, const std::function<std::string()>& make) {
  {
    std::unique_lock lock(mutex_);
    for (auto known = payloads_.find(hash); known != payloads_.end(); known = payloads_.find(hash)) {
      if (known->second) {
        ++reused_;
        return *known->second;
      }
      made_.wait(lock);
    }
    payloads_.emplace(hash, std::nullopt);
  }
  std::string payload;
  try {
    payload = make();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    payloads_.erase(hash);
    made_.notify_all();
    throw;
  }
  const std::lock_guard lock(mutex_);
  payloads_.erase(hash);
  keep(hash, payload);
  made_.notify_all();
  return payload;
}

void PayloadCache::put(const std::string& hash, const std::string& payload) {
  const std::lock_guard lock(mutex_);
  keep(hash, payload);
}

std::size_t PayloadCache::reused() const {
  const std::lock_guard lock(mutex_);
  return reused_;
}

void PayloadCache::keep(const std::string& hash, const std::string& payload) {
  const std::size_t size =
      hash.size() + payload.size() + sizeof(std::pair<std::string, std::optional<std::string>>);
  if (size > room_) return;
  if (payloads_.emplace(hash, payload).second) room_ -= size;
}

}  // namespace stagecraft
