// Answers to questions, each worked out once: the same from any thread.
//
//   waits   who asks what another thread is working out, and nobody else: work may ask other questions of the
//           same memo, if they never come back to its own
//   throws  what the work throws; whoever asks next works anew
#pragma once

#include <map>
#include <mutex>
#include <optional>

namespace stagecraft {

template <class Question, class Answer>
class Memo {
 public:
  // The answer stays where it is as long as the memo.
  template <class Work>
  [[nodiscard]] const Answer& answer(const Question& question, const Work& work) {
    Slot& slot = slot_of(question);
    const std::scoped_lock lock(slot.mutex);
    if (!slot.answer) slot.answer.emplace(work());
    return *slot.answer;
  }

 private:
  struct Slot {
    std::mutex mutex;
    std::optional<Answer> answer;
  };
  Slot& slot_of(const Question& question) {
    const std::scoped_lock lock(mutex_);
    return slots_[question];
  }

  std::mutex mutex_;  // guards the map, not its slots
  std::map<Question, Slot> slots_;
};

}  // namespace stagecraft
