#!/usr/bin/env python3
"""Several scenarios of one command: answered one behind the other, on any number of threads, until an interrupt.

usage: several_test.py STAGECRAFT SOURCE_DIR [Several[.TEST]]
"""
import os
import signal
import subprocess
import time

from harness import DONE, FLAGSHIP, GOOD, LIMIT_S, NO, PROGRAM, SOURCE, STAGES, WRONG_INPUT, Case, main, stagecraft


class Several(Case):
    def test_the_worst_exit_code_wins_and_the_good_ones_still_print(self):
        bad = self.write("bad.yaml", GOOD.replace("nodes:", "nodez:"))
        missed = self.write("missed.yaml", STAGES + 'assert: {iteration_time: "< 1 ms"}\n')
        good = self.write("good.yaml", STAGES)
        for files, code in (((good, good), DONE), ((missed, good), NO), ((missed, bad, good), WRONG_INPUT),
                            ((bad, missed, good), WRONG_INPUT)):
            with self.subTest(files):
                ran = stagecraft("run", *files, "--json", cwd=self.folder)
                self.assertEqual(code, ran.returncode)
                schemas = {good: "stagecraft.result/1", missed: "stagecraft.result/1", bad: "stagecraft.error/1"}
                self.assertEqual([schemas[file] for file in files], [r["schema"] for r in self.results(ran)])
                self.assertEqual(list(files), [r["scenario"] for r in self.results(ran)])

    def test_an_error_of_an_option_says_which_scenario_it_is_of(self):
        one, two = self.write("one.yaml", STAGES), self.write("two.yaml", STAGES)
        for command in ("run", "check", "search"):
            ran = stagecraft(command, one, two, "--set", "training.nope=1", "--json", cwd=self.folder)
            self.assertEqual([one, two], [document["scenario"] for document in self.results(ran)])

    def assert_answered_one_by_one(self, command, files, codes):
        """On any number of threads: what each file alone gives, one behind the other, and the worst of their codes.
        Of several files one that is refused does not say that nothing was simulated."""
        alone = [stagecraft(*command, file, cwd=self.folder) for file in files]
        self.assertEqual(codes, [ran.returncode for ran in alone])
        for jobs in ("1", "2", "5"):
            with self.subTest(command, jobs=jobs):
                ran = stagecraft(*command, *files, "--jobs", jobs, cwd=self.folder)
                self.assertEqual("".join(one.stdout for one in alone), ran.stdout)
                self.assertEqual("".join(one.stderr.replace("nothing was simulated", f"{file} was not simulated")
                                         for file, one in zip(files, alone)), ran.stderr)
                self.assertEqual(max(codes), ran.returncode)

    def test_several_scenarios_give_the_same_bytes_on_any_number_of_threads(self):
        files = [self.write("slow.yaml", STAGES.replace("batch_size: 8", "batch_size: 4000")),
                 self.write("bad.yaml", GOOD.replace("nodes:", "nodez:")),
                 self.write("missed.yaml", STAGES + 'assert: {iteration_time: "< 1 ms"}\n'),
                 "nosuch.yaml", self.write("good.yaml", STAGES),
                 self.write("infeasible.yaml", STAGES.replace("batch_size: 8", "batch_size: 9").replace(
                     "schedule: 1f1b", "schedule: interleaved-1f1b"))]
        for form in ([], ["--json"]):
            self.assert_answered_one_by_one(["run", *form], files, [DONE, WRONG_INPUT, NO, WRONG_INPUT, DONE, WRONG_INPUT])
            for command in ("check", "memory"):
                self.assert_answered_one_by_one([command, *form], files,
                                                [DONE, WRONG_INPUT, DONE, WRONG_INPUT, DONE, WRONG_INPUT])

    def test_sets_are_scored_to_the_same_bytes_on_any_number_of_threads(self):
        sets = [str(SOURCE / "calibrate/validation" / name) for name in ("megatron_sc21.yaml", "llm_foundry_h100.yaml")]
        one, two = (stagecraft("validate", *sets, "nosuch.yaml", "--jobs", jobs) for jobs in ("1", "2"))
        self.assertEqual((one.stdout, one.stderr), (two.stdout, two.stderr))
        self.assertEqual((WRONG_INPUT, WRONG_INPUT), (one.returncode, two.returncode))
        self.assertLess(one.stdout.index("megatron_sc21"), one.stdout.index("llm_foundry_h100"))

    def test_an_interrupt_ends_behind_whole_answers(self):
        job = subprocess.Popen([PROGRAM, "run", *[FLAGSHIP] * 500, "--json", "--jobs", "2"], cwd=SOURCE, text=True,
                               env=os.environ | {"STAGECRAFT_DATA": str(SOURCE)}, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
        self.addCleanup(job.stderr.close)
        self.addCleanup(job.stdout.close)
        first = job.stdout.readline()
        job.send_signal(signal.SIGINT)
        lines, said = [first, *job.stdout], job.stderr.read()
        self.assertEqual(128 + signal.SIGINT, job.wait(LIMIT_S))
        self.assertTrue(all(line == first for line in lines), "an answer was cut off")
        self.assertEqual(f"stopped: {len(lines)} of 500 scenarios are done\n", said)

    def test_an_interrupt_does_not_wait_for_scenarios_that_run(self):
        long = ["scenarios/goodput/varuna.yaml"] * 2
        job = subprocess.Popen([PROGRAM, "goodput", *long, "--json", "--jobs", "2", "--set", "failures.repeats=1000000"],
                               cwd=SOURCE, text=True, env=os.environ | {"STAGECRAFT_DATA": str(SOURCE)},
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(1)
        job.send_signal(signal.SIGINT)
        began = time.monotonic()
        out, said = job.communicate(timeout=LIMIT_S)
        self.assertLess(time.monotonic() - began, 5)
        self.assertEqual((128 + signal.SIGINT, "", "stopped: 0 of 2 scenarios are done\n"), (job.returncode, out, said))


if __name__ == "__main__":
    main()
