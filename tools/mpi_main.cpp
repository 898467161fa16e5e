// The program `stagecraft-mpi`: `sweep` on the ranks of an MPI job.
//
//   mpirun -np 64 stagecraft-mpi sweep SWEEP.yaml --resume rows.jsonl
//
// Rank 0 hands out points, receives rows and writes them in grid order; the others compute. The output is
// that of `stagecraft sweep`, byte for byte, whatever the number of ranks. When a rank dies, MPI ends the
// job; --resume goes on with the rows that are there.
//
// Protocol: rank 0 says whether there is a sweep at all (broadcast), all say whether they read the same one
// (all-reduce), then each worker has kAhead points in hand and gets one for each row that it returns, until
// kStop. The number of a point is in the message, not in the tag: MPI_TAG_UB may be small.
#include <fmt/format.h>
#include <mpi.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <limits>
#include <map>
#include <streambuf>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tools/commands/sweep_engine.hpp"
#include "tools/program.hpp"

namespace stagecraft {
namespace {

constexpr std::uint64_t kStop = std::numeric_limits<std::uint64_t>::max();
constexpr int kJob = 1, kRow = 2;
constexpr std::size_t kAhead = 2;       // points a worker has in hand: it never waits for the next one
constexpr std::size_t kWindow = 4'096;  // points handed out ahead of the last row that was written
constexpr std::chrono::microseconds kNap(100);  // a spinning rank 0 would take a core from a worker

int rank_of_this() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int rank_count() {
  int count = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  return count;
}

// Do all ranks agree?
bool all_agree(bool yes) {
  int mine = yes ? 1 : 0, all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all == 1;
}

// What rank 0 has to say before the work: the hash of its sweep; empty: there is no work.
std::string broadcast(std::string hash) {
  std::array<char, 17> text{};
  if (hash.size() < text.size()) std::memcpy(text.data(), hash.data(), hash.size());
  MPI_Bcast(text.data(), static_cast<int>(text.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
  return text.data();
}

void send_job(int worker, std::uint64_t job) {
  MPI_Send(&job, 1, MPI_UINT64_T, worker, kJob, MPI_COMM_WORLD);
}

// Rank 0.
class Master {
 public:
  explicit Master(const SweepWork& work) : work_(work) {}

  void run() {
    const int ranks = rank_count();
    for (std::size_t round = 0; round < kAhead; ++round)
      for (int worker = 1; worker < ranks; ++worker) hand_out(worker);
    while (in_flight_ > 0) {
      if (!receive()) std::this_thread::sleep_for(kNap);
      hand_on();
      if (!work_.tick()) go_on_ = false;
    }
    for (int worker = 1; worker < ranks; ++worker) send_job(worker, kStop);
  }

 private:
  // The next point to a worker; where it may not go further ahead, the worker waits.
  void hand_out(int worker) {
    if (!go_on_ || next_ >= work_.points.size()) return;
    if (next_ >= handed_on_ + kWindow) return waiting_.push_back(worker);
    send_job(worker, work_.points[next_]);
    positions_.emplace(work_.points[next_], next_);
    ++next_;
    ++in_flight_;
  }

  bool receive() {
    int there = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, kRow, MPI_COMM_WORLD, &there, &status);
    if (there == 0) return false;
    int size = 0;
    MPI_Get_count(&status, MPI_CHAR, &size);
    std::string message(static_cast<std::size_t>(size), '\0');
    MPI_Recv(message.data(), size, MPI_CHAR, status.MPI_SOURCE, kRow, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    std::uint64_t point = 0;
    std::memcpy(&point, message.data(), sizeof point);
    rows_.emplace(positions_.extract(point).mapped(), message.substr(sizeof point));
    --in_flight_;
    hand_out(status.MPI_SOURCE);
    return true;
  }

  // Rows whose turn it is.
  void hand_on() {
    for (auto row = rows_.begin(); go_on_ && row != rows_.end() && row->first == handed_on_;
         row = rows_.begin()) {
      go_on_ = work_.accept(work_.points[handed_on_], row->second);
      ++handed_on_;
      rows_.erase(row);
    }
    for (const int worker : std::exchange(waiting_, {})) hand_out(worker);
  }

  const SweepWork& work_;
  std::map<std::uint64_t, std::size_t> positions_;  // of the points that are out
  std::map<std::size_t, std::string> rows_;         // done, and not yet their turn
  std::vector<int> waiting_;
  std::size_t next_ = 0, handed_on_ = 0, in_flight_ = 0;
  bool go_on_ = true;
};

// The other ranks.
void serve(PointRunner& runner) {
  for (;;) {
    std::uint64_t job = 0;
    MPI_Recv(&job, 1, MPI_UINT64_T, 0, kJob, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (job == kStop) return;
    std::string message(sizeof job, '\0');
    std::memcpy(message.data(), &job, sizeof job);
    message += runner.row(static_cast<std::size_t>(job));
    MPI_Send(message.data(), static_cast<int>(message.size()), MPI_CHAR, 0, kRow, MPI_COMM_WORLD);
  }
}

void refuse_other_commands(const CommandSpec& command) {
  if (command.name == "sweep") return;
  throw UsageError(fmt::format("`{}` does not run on the ranks of an MPI job", command.name),
                   fmt::format("stagecraft-mpi sweep SWEEP.yaml; or stagecraft {}", command.name));
}

// Where work begins and does not end (a bug of ours), ranks wait for ever: end them all.
int lead(const std::vector<std::string>& words, const char* invoked) {
  bool told = false, working = false;
  const SweepEngine engine = [&](const SweepWork& work) {
    told = true;
    broadcast(work.sweep.hash);
    if (!all_agree(true))
      throw UsageError("a rank cannot read the sweep, or reads another one",
                       "all nodes need the same files and the same program");
    working = true;
    Master(work).run();
    working = false;
  };
  const int code = run_program(words, invoked,
                               [&](const CommandSpec& command, const Arguments& arguments, Session& session) {
                                 refuse_other_commands(command);
                                 session.out_is_terminal = session.err_is_terminal =
                                     false;  // mpirun gives a terminal of its own to rank 0
                                 if (rank_count() == 1)
                                   return sweep_command_on(sweep_on_threads(1), arguments, session);
                                 return sweep_command_on(engine, arguments, session);
                               });
  if (working) MPI_Abort(MPI_COMM_WORLD, code);
  if (!told && rank_count() > 1) broadcast("");
  return code;
}

int follow(const std::vector<std::string>& words, const char* invoked) {
  const std::string hash = broadcast("");
  if (hash.empty()) return kDone;  // rank 0 has said why
  bool agreed = false;
  const int code =
      run_program(words, invoked, [&](const CommandSpec&, const Arguments& arguments, Session& session) {
        Library library(session.data);
        Diagnostics diagnostics;
        const std::optional<Sweep> sweep = prepare_sweep(sweep_file(arguments), arguments.all("set"),
                                                         row_options(arguments), library, diagnostics);
        agreed = true;
        if (!all_agree(sweep && sweep->hash == hash)) return static_cast<int>(kWrongInput);
        PayloadCache cache;
        PointRunner runner(*sweep, session.data, cache);
        serve(runner);
        return static_cast<int>(kDone);
      });
  if (!agreed) (void)all_agree(false);
  return code;
}

// Rank 0 speaks for all.
class Silence : public std::streambuf {
 protected:
  int_type overflow(int_type c) override { return traits_type::not_eof(c); }
};

}  // namespace
}  // namespace stagecraft

int main(int argc, char** argv) {
  using namespace stagecraft;
  MPI_Init(&argc, &argv);
  const std::vector<std::string> words(argv + 1, argv + argc);
  Silence silence;
  int code = kOurBug;
  if (rank_of_this() == 0) {
    code = lead(words, argv[0]);
  } else {
    std::streambuf* const out = std::cout.rdbuf(&silence);
    std::streambuf* const err = std::cerr.rdbuf(&silence);
    code = follow(words, argv[0]);
    std::cout.rdbuf(out);
    std::cerr.rdbuf(err);
    code = code == kOurBug ? code : kDone;  // mpirun reports the worst: what rank 0 says counts
  }
  MPI_Finalize();
  return code;
}
