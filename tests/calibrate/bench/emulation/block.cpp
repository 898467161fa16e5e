#include "tests/calibrate/bench/emulation/block.hpp"

#include <dlfcn.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define STAGECRAFT_FIBERS_UNDER_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STAGECRAFT_FIBERS_UNDER_ASAN
#endif
#endif
#ifdef STAGECRAFT_FIBERS_UNDER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace stagecraft::emulation {
namespace {

constexpr std::size_t kStack = std::size_t{64} << 10;
constexpr unsigned kWarp = 32;

// The jump of the C library. That of the address sanitizer takes every jump for one out of functions, and
// forgets what it knows of the stack: a hundred times as slow, and not so here.
using Jump = void (*)(jmp_buf, int);
Jump plain_jump() {
#ifdef STAGECRAFT_FIBERS_UNDER_ASAN
  if (void* library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD))
    if (void* jump = dlsym(library, "_longjmp")) return reinterpret_cast<Jump>(jump);
#endif
  return _longjmp;
}
const Jump jump_to = plain_jump();

// A stack that runs threads until one of them has to wait; from then on it belongs to that thread until that
// ends. It is entered the first time by a context; after that by jumps, which ask nothing of the operating
// system.
class Fiber {
 public:
  explicit Fiber(void (*entry)())
      : stack_(mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                    0)) {
    if (stack_ == MAP_FAILED) throw std::bad_alloc();
    (void)getcontext(&context_);
    context_.uc_stack.ss_sp = stack_;
    context_.uc_stack.ss_size = kStack;
    context_.uc_link = nullptr;
    makecontext(&context_, entry, 0);
  }
  ~Fiber() {
#ifdef STAGECRAFT_FIBERS_UNDER_ASAN
    ASAN_UNPOISON_MEMORY_REGION(stack_, kStack);
#endif
    (void)munmap(stack_, kStack);
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // From the scheduler into the fiber, until it comes back.
  void enter() {
    finished = false;
#ifdef STAGECRAFT_FIBERS_UNDER_ASAN
    void* own = nullptr;
    __sanitizer_start_switch_fiber(&own, stack_, kStack);
#endif
    if (_setjmp(home_) == 0) {
      if (entered_) jump_to(place_, 1);
      entered_ = true;
      (void)setcontext(&context_);
    }
#ifdef STAGECRAFT_FIBERS_UNDER_ASAN
    __sanitizer_finish_switch_fiber(own, nullptr, nullptr);
#endif
  }
  // The first thing that it does.
  void arrived() {
#ifdef STAGECRAFT_FIBERS_UNDER_ASAN
    __sanitizer_finish_switch_fiber(fake_stack_, &home_stack_, &home_size_);
#endif
  }
  // Back to the scheduler, until it is entered again.
  void leave() {
#ifdef STAGECRAFT_FIBERS_UNDER_ASAN
    __sanitizer_start_switch_fiber(&fake_stack_, home_stack_, home_size_);
#endif
    if (_setjmp(place_) == 0) jump_to(home_, 1);
    arrived();
  }

  bool finished = false;  // with its threads: it can be given others

 private:
  void* stack_;
  ucontext_t context_{};
  jmp_buf place_{}, home_{};
  bool entered_ = false;
#ifdef STAGECRAFT_FIBERS_UNDER_ASAN
  void* fake_stack_ = nullptr;
  const void* home_stack_ = nullptr;
  std::size_t home_size_ = 0;
#endif
};

// A place where threads meet, over and over.
struct Meeting {
  std::uint64_t round = 0;  // how often all have come
  unsigned here = 0;        // how many have come this time
  Where where{};            // of the first
};

struct Warp {
  Meeting meeting;
  unsigned mask = 0;
  std::size_t size = 0;
  // The values of this round and of the last, which others may still be reading.
  std::array<std::array<std::array<unsigned char, 8>, kWarp>, 2> values{};
};

struct Thread {
  Fiber* fiber = nullptr;  // while it waits
  const Meeting* meeting = nullptr;
  std::uint64_t round = 0;
  Where where{};
  bool finished = false;
};

std::string text_of(Where where) {
  return std::string(where.file) + ":" + std::to_string(where.line);
}

class Block {
 public:
  Block(const Extent& extent, Order order, const std::function<void(unsigned)>& enter,
        const std::function<void()>& body)
      : enter_(enter), body_(body), threads_(extent.count()), warps_((extent.count() + kWarp - 1) / kWarp) {
    for (unsigned i = 0; i < extent.count(); ++i)
      order_.push_back(order == Order::kForward ? i : extent.count() - 1 - i);
  }

  void run();
  void run_threads();  // on a fiber: one thread after the other, until one that had to wait is done
  [[nodiscard]] Fiber& fiber() { return *fiber_; }
  void wait(Meeting& meeting, unsigned wanted, Where where);
  void exchange(unsigned mask, void* value, std::size_t size, unsigned from_lane, Where where);
  void fresh(void* memory, std::size_t size);
  [[nodiscard]] unsigned current() const { return current_; }
  Meeting& barrier() { return barrier_; }
  [[nodiscard]] unsigned count() const { return static_cast<unsigned>(threads_.size()); }
  void complain(const std::string& what) {
    if (complaint_.empty()) complaint_ = what;
  }

 private:
  [[nodiscard]] Fiber& free_fiber();
  [[nodiscard]] std::string stuck() const;
  void resume(unsigned index);
  [[nodiscard]] bool advance(std::size_t first, std::size_t last);

  const std::function<void(unsigned)>& enter_;
  const std::function<void()>& body_;
  std::vector<unsigned> order_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  Meeting barrier_;
  std::vector<void*> fresh_;
  std::string complaint_;
  std::size_t started_ = 0;        // in `order_`
  std::size_t last_to_start_ = 0;  // so far
  std::size_t finished_ = 0;
  unsigned current_ = 0;
  Fiber* fiber_ = nullptr;  // that runs now
};

Block* running = nullptr;  // there is one device, and it runs one block at a time
std::vector<std::unique_ptr<Fiber>> all_fibers;
std::vector<Fiber*> free_fibers;

void entry() {
  running->fiber().arrived();
  for (;;) {
    running->run_threads();
    running->fiber().finished = true;
    running->fiber().leave();
  }
}

Fiber& Block::free_fiber() {
  if (free_fibers.empty()) {
    all_fibers.push_back(std::make_unique<Fiber>(entry));
    free_fibers.push_back(all_fibers.back().get());
  }
  Fiber& fiber = *free_fibers.back();
  free_fibers.pop_back();
  return fiber;
}

void Block::run_threads() {
  while (started_ < last_to_start_) {
    const unsigned index = order_[started_++];
    current_ = index;
    enter_(index);
    body_();
    threads_[index].finished = true;
    ++finished_;
    if (threads_[index].fiber != nullptr) break;  // it waited: others have been started elsewhere
  }
}

void Block::resume(unsigned index) {
  current_ = index;
  enter_(index);
  fiber_ = threads_[index].fiber;
  fiber_->enter();
  if (fiber_->finished) free_fibers.push_back(fiber_);
}

// A warp runs as far as it can before the next one does: what the others must wait for is done as late, or as
// early, as any device may do it.
void Block::run() {
  running = this;
  while (finished_ < threads_.size() && complaint_.empty()) {
    bool moved = false;
    for (std::size_t first = 0; first < order_.size(); first += kWarp)
      while (advance(first, std::min(first + kWarp, order_.size()))) moved = true;
    if (!moved) complain(stuck());
  }
  running = nullptr;
  if (complaint_.empty()) return;
  free_fibers.clear();  // what still waits will wait for ever
  all_fibers.clear();
  throw Divergence(complaint_);
}

// Runs each thread of order_[first, last) until it waits; false where none can.
bool Block::advance(std::size_t first, std::size_t last) {
  bool moved = false;
  if (!complaint_.empty()) return false;
  for (std::size_t i = first; i < std::min(last, started_); ++i) {
    const Thread& thread = threads_[order_[i]];
    if (thread.finished || thread.meeting == nullptr || thread.meeting->round == thread.round) continue;
    moved = true;
    resume(order_[i]);
  }
  last_to_start_ = last;
  while (started_ < last) {
    moved = true;
    fiber_ = &free_fiber();
    fiber_->enter();
    if (fiber_->finished) free_fibers.push_back(fiber_);
  }
  return moved;
}

std::string Block::stuck() const {
  std::string text = "waits for ever:";
  for (std::size_t i = 0; i < threads_.size(); ++i)
    if (!threads_[i].finished) {
      text += " thread " + std::to_string(i) + " at " + text_of(threads_[i].where) + ";";
      break;
    }
  return text + " " + std::to_string(finished_) + " of " + std::to_string(threads_.size()) +
         " threads have returned";
}

void Block::wait(Meeting& meeting, unsigned wanted, Where where) {
  Thread& thread = threads_[current_];
  if (meeting.here == 0) meeting.where = where;
  if (meeting.where.line != where.line || std::strcmp(meeting.where.file, where.file) != 0)
    complain("threads meet at different places: " + text_of(meeting.where) + " and " + text_of(where));
  thread.where = where;
  thread.meeting = &meeting;
  thread.round = meeting.round;
  if (++meeting.here == wanted) {
    meeting.here = 0;
    ++meeting.round;
  }
  thread.fiber = fiber_;
  fiber_->leave();
}

void Block::exchange(unsigned mask, void* value, std::size_t size, unsigned from_lane, Where where) {
  const unsigned mine = current_ % kWarp;
  Warp& warp = warps_[current_ / kWarp];
  if (warp.meeting.here == 0) warp.mask = mask, warp.size = size;
  if (warp.mask != mask || warp.size != size || (mask >> mine & 1U) == 0 || (mask >> from_lane & 1U) == 0)
    complain(text_of(where) +
             ": lanes of a warp exchange with different masks or types, or with a lane left out");
  auto& values = warp.values[warp.meeting.round % 2];
  std::memcpy(values[mine].data(), value, size);
  wait(warp.meeting, static_cast<unsigned>(__builtin_popcount(mask)), where);
  std::memcpy(value, values[from_lane].data(), size);
}

void Block::fresh(void* memory, std::size_t size) {
  if (std::find(fresh_.begin(), fresh_.end(), memory) != fresh_.end()) return;
  fresh_.push_back(memory);
  std::memset(memory, 0xFF, size);
}

}  // namespace

void run_block(const Extent& threads, Order order, const std::function<void(unsigned)>& enter,
               const std::function<void()>& body) {
  Block(threads, order, enter, body).run();
}

void wait_for_block(Where where) {
  running->wait(running->barrier(), running->count(), where);
}

void exchange_in_warp(unsigned mask, void* value, std::size_t size, unsigned from_lane, Where where) {
  running->exchange(mask, value, size, from_lane, where);
}

unsigned lane() {
  return running->current() % kWarp;
}

void fresh_bytes(void* memory, std::size_t size) {
  running->fresh(memory, size);
}

}  // namespace stagecraft::emulation
