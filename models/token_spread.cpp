#include "models/token_spread.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.hpp"

namespace stagecraft {

namespace {

// C(all - held, chosen) / C(all, chosen): none of the chosen is held.
double none_held(std::int64_t all, std::int64_t held, std::int64_t chosen) {
  // The ratio is the same with `held` and `chosen` exchanged; the fewer factors, the better.
  const std::int64_t factors = std::min(held, chosen), taken = std::max(held, chosen);
  double probability = 1;
  for (std::int64_t i = 0; i < factors && probability > 1e-18; ++i)
    probability *=
        static_cast<double>(std::max<std::int64_t>(0, all - taken - i)) / static_cast<double>(all - i);
  return probability;
}

class Spread {
 public:
  Spread(const TokenChoice& choice, std::int64_t holders)
      : choice_(choice),
        holders_(holders),
        group_(choice.count / choice.groups),
        candidates_(group_ * choice.top_groups),
        log_factorial_(static_cast<std::size_t>(choice.groups) + 1) {
    for (std::size_t i = 1; i < log_factorial_.size(); ++i)
      log_factorial_[i] = log_factorial_[i - 1] + std::log(static_cast<double>(i));
  }

  [[nodiscard]] double sum() const {
    if (alike()) return static_cast<double>(holders_) * hit(0);
    double sum = 0;
    for (std::int64_t i = 0; i < holders_; ++i) sum += hit(i);
    return sum;
  }

 private:
  [[nodiscard]] std::int64_t first_expert(std::int64_t holder) const {
    return holder * choice_.count / holders_;
  }

  [[nodiscard]] bool alike() const {
    if (choice_.count % holders_ != 0) return false;
    const std::int64_t held = choice_.count / holders_;
    return choice_.top_groups == choice_.groups || held % group_ == 0 || group_ % held == 0;
  }

  [[nodiscard]] double missed_of(std::int64_t held) const {
    return none_held(candidates_, held, choice_.top_k);
  }

  [[nodiscard]] double choices(std::int64_t all, std::int64_t chosen) const {
    const auto log = [&](std::int64_t n) { return log_factorial_[static_cast<std::size_t>(n)]; };
    return log(all) - log(chosen) - log(all - chosen);
  }

  // The probability that of `named` groups `in` given ones are chosen, and any `j` of `whole` others.
  [[nodiscard]] double probability(std::int64_t named, std::int64_t in, std::int64_t whole,
                                   std::int64_t j) const {
    const std::int64_t others = choice_.groups - named - whole, rest = choice_.top_groups - in - j;
    if (rest < 0 || rest > others) return 0;
    return std::exp(choices(whole, j) + choices(others, rest) - choices(choice_.groups, choice_.top_groups));
  }

  // The probability that one of the chosen experts is of this holder.
  [[nodiscard]] double hit(std::int64_t holder) const {
    const std::int64_t from = first_expert(holder), to = first_expert(holder + 1);
    if (choice_.top_groups == choice_.groups) return 1 - missed_of(to - from);
    const std::int64_t first = from / group_, last = (to - 1) / group_;
    if (first == last) {
      const double chosen = static_cast<double>(choice_.top_groups) / static_cast<double>(choice_.groups);
      return chosen * (1 - missed_of(to - from));
    }
    return over_groups((first + 1) * group_ - from, last - first - 1, to - last * group_);
  }

  // A holder with `head` experts of one group, `whole` groups and `tail` experts of another.
  [[nodiscard]] double over_groups(std::int64_t head, std::int64_t whole, std::int64_t tail) const {
    double hit = 0;
    for (const std::int64_t with_head : {0, 1})
      for (const std::int64_t with_tail : {0, 1})
        for (std::int64_t j = 0; j <= whole; ++j) {
          const std::int64_t held = with_head * head + with_tail * tail + j * group_;
          hit += probability(2, with_head + with_tail, whole, j) * (1 - missed_of(held));
        }
    return hit;
  }

  TokenChoice choice_;
  std::int64_t holders_;
  std::int64_t group_;       // experts of a group
  std::int64_t candidates_;  // M
  std::vector<double> log_factorial_;
};

}  // namespace

double expected_holders(const TokenChoice& choice, std::int64_t holders) {
  SC_CHECK(holders >= 1 && holders <= choice.count, "a holder has an expert");
  SC_CHECK(choice.groups >= 1 && choice.count % choice.groups == 0 && choice.top_groups >= 1 &&
               choice.top_groups <= choice.groups && choice.top_k >= 1 &&
               choice.top_k <= choice.count / choice.groups * choice.top_groups,
           "a token finds its experts in the groups that it chooses");
  if (holders == 1) return 1;
  const double most = static_cast<double>(std::min(holders, choice.top_k));
  return std::min(most, Spread(choice, holders).sum());
}

Bytes NodeCopies::over(std::int64_t nodes) const {
  return to_bytes(static_cast<double>(each.count()) * expected_holders(choice, nodes));
}

}  // namespace stagecraft
