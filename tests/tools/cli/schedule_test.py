#!/usr/bin/env python3
"""The parts of `stagecraft schedule`: orders shown, compared, imported, exported and searched for.

usage: schedule_test.py STAGECRAFT SOURCE_DIR [Schedule[.TEST]]
"""
from harness import DONE, NO, WRONG_INPUT, Case, main, stagecraft


class Schedule(Case):
    def test_an_imported_order_says_that_it_is_for_people(self):
        text = stagecraft("schedule", "import", "tests/data/schedules/csv/made_1f1b_p2_m3_compute_only.csv").stdout
        self.assertEqual(["# 2 ranks, 2 stages, 3 micro-batches, the order of 1f1b",
                          "# for people: check, show and `schedule: {file: …}` read the CSV itself"], text.splitlines()[:2])

    def test_options_of_a_schedule_are_judged_at_once(self):
        ran = stagecraft("schedule", "show", "--schedule", "1f1bb", "--stages", "0", "--micro-batches", "-3", "--forward", "1",
                         "--p2p", "foo")
        self.assertEqual(WRONG_INPUT, ran.returncode)
        said = [line.split(": ")[2] for line in ran.stderr.splitlines() if line.startswith("stagecraft: error: ")]
        self.assertEqual(["--schedule", "--stages", "--micro-batches", "--forward", "--p2p"], said)

    def test_parts_of_schedule_refuse_options_that_they_do_not_take(self):
        order, sizes = ["--schedule", "1f1b"], ["--stages", "4", "--micro-batches", "8"]
        search = {"--memory-limit": "2", "--goal": "makespan", "--effort": "1"}
        for part, words, refused in (("show", order + sizes, search | {"--format": "csv-calls"}),
                                     ("export", order + sizes, search | {"--width": "80", "--p2p": "batched"}),
                                     ("compare", sizes, {"--goal": "makespan", "--effort": "1", "--format": "csv", "--width": "80"})):
            for option, value in refused.items():
                ran = stagecraft("schedule", part, *words, option, value)
                self.assertEqual((WRONG_INPUT, ""), (ran.returncode, ran.stdout), (part, option))
                self.assertIn(f"{option} is nothing that `schedule {part}` takes", ran.stderr)

    # 8 micro-batches of 4 stages: the costs of a chunk are those of a stage divided by the chunks, fused pairs included.
    def test_orders_are_compared_at_costs_of_a_stage(self):
        sizes = ["--stages", "4", "--micro-batches", "8"]

        def compared(*words):
            table, = self.results(stagecraft("schedule", "compare", *sizes, "--json", *words))
            self.assertEqual("stage", table["costs_of"])
            return {row["name"]: row.get("makespan_s") for row in table["schedules"]}

        def shown(name, *words):
            return self.results(stagecraft("schedule", "show", "--schedule", name, *sizes, "--chunks", "2", "--json", *words))[0]["makespan_s"]

        of_a_chunk = ["--forward", "500ms", "--input-gradient", "500ms", "--weight-gradient", "500ms"]
        self.assertEqual(compared()["interleaved-1f1b"], shown("interleaved-1f1b", *of_a_chunk))
        self.assertEqual(compared("--fused", "2s")["dualpipe-v"], shown("dualpipe-v", *of_a_chunk, "--fused", "1s"))
        group = ["--micro-batch-group", "8"]
        self.assertEqual(compared(*group)["interleaved-1f1b"], shown("interleaved-1f1b", *of_a_chunk, *group))
        text = stagecraft("schedule", "compare", *sizes).stdout
        self.assertIn("costs are of one stage", text)
        self.assertEqual([], [line for line in text.splitlines() if len(line) > 80])
        longest, = [line for line in text.splitlines() if line.startswith("varuna ")]  # its bar has what is left
        self.assertEqual(80, len(longest))

    def test_orders_that_need_more_chunks_than_are_given_are_not_compared(self):
        refused = {}
        for given in ("1", "2"):
            table, = self.results(stagecraft("schedule", "compare", "--stages", "4", "--micro-batches", "8", "--json", "--chunks", given))
            refused[given] = {row["name"]: (row["chunks"], row["refused"]) for row in table["schedules"] if "refused" in row}
        self.assertEqual((1, "1 chunk a rank: interleaved-1f1b needs at least 2"), refused["1"]["interleaved-1f1b"])
        self.assertEqual((1, "1 chunk a rank: zb-v runs 2, down the ranks and back"), refused["1"]["zb-v"])
        self.assertEqual({}, refused["2"])

    def test_bubbles_of_compared_orders_are_those_that_are_shown(self):
        sizes = ["--stages", "4", "--micro-batches", "8", "--message", "100ms"]
        table, = self.results(stagecraft("schedule", "compare", *sizes, "--json"))
        compared = {row["name"]: row for row in table["schedules"]}
        for name in ("gpipe", "1f1b", "zb-h1", "chimera", "pipedream-2bw"):
            shown, = self.results(stagecraft("schedule", "show", "--schedule", name, *sizes, "--json"))
            self.assertEqual(shown["bubble"], compared[name]["bubble"], name)

    def test_a_fused_pair_lasts_from_the_longer_of_its_passes_to_both(self):
        sizes = ["--stages", "4", "--micro-batches", "8"]
        for part in (["show", "--schedule", "dualpipe"], ["show", "--schedule", "dualpipe-v"], ["compare"]):
            for time, written in (("0s", "0 s"), ("1999999us", "1.999999 s"), ("3001ms", "3.001 s")):
                ran = stagecraft("schedule", *part, *sizes, "--fused", time)
                self.assert_refused(ran)
                self.assertEqual(f"stagecraft: error: --fused: a pair of passes of 1 s and 2 s does not last {written}\n"
                                 "  hint: it lasts 2 s, the longer of them, to 3 s, both\n", ran.stderr)
            for time in ("2s", "3s"):
                self.assertEqual(DONE, stagecraft("schedule", *part, *sizes, "--fused", time).returncode)
        nothing = ["--forward", "0s", "--input-gradient", "0s", "--weight-gradient", "0s"]
        show = ["schedule", "show", "--schedule", "dualpipe", *sizes, *nothing, "--fused"]
        self.assertEqual(DONE, stagecraft(*show, "0s").returncode)
        self.assertIn("hint: it lasts 0 s\n", stagecraft(*show, "1s").stderr)
        # An order without pairs has none that could last too long.
        self.assertEqual(DONE, stagecraft("schedule", "show", "--schedule", "1f1b", *sizes, "--fused", "9s").returncode)

    def test_passes_of_an_order_are_of_lengths_that_can_be_added(self):
        order = ["schedule", "show", "--schedule", "1f1b", "--stages", "4", "--micro-batches", "8", "--forward"]
        self.assertEqual(DONE, stagecraft(*order, "60 s").returncode)
        ran = stagecraft(*order, "50000 days")
        self.assertEqual((WRONG_INPUT, ""), (ran.returncode, ran.stdout))
        self.assertIn("--forward: 50000 days is more than 60.0 s", ran.stderr)
        search = ["schedule", "search", "--stages", "4", "--micro-batches", "8", "--effort", "0"]
        for option in ("--forward", "--input-gradient", "--weight-gradient", "--message"):
            ran = stagecraft(*search, option, "50000 days")
            self.assert_refused(ran)
            self.assertIn(f"{option}: 50000 days is more than 60.0 s", ran.stderr)

    COMPARE = ["schedule", "compare", "--stages", "4", "--micro-batches", "8", "--json"]

    # Chunks of 1.5 ns: a makespan is the nearest whole nanosecond of the one that is a billion times longer.
    def test_costs_of_a_few_nanoseconds_are_cut_into_chunks_exactly(self):
        def rows(unit):
            times = [word for option in ("--forward", "--input-gradient", "--weight-gradient", "--message")
                     for word in (option, f"3 {unit}")]
            return {row["name"]: row for row in self.results(stagecraft(*self.COMPARE, *times))[0]["schedules"]}

        seconds, nanoseconds = rows("s"), rows("ns")
        for name in ("1f1b", "interleaved-1f1b", "looped-bfs", "dualpipe-v"):
            with self.subTest(name):
                self.assertAlmostEqual(seconds[name]["makespan_s"], nanoseconds[name]["makespan_s"] * 1e9, delta=0.51)
                self.assertEqual(seconds[name]["bubble"], nanoseconds[name]["bubble"])

    def test_an_exported_order_is_its_cells_in_json(self):
        export = ["schedule", "export", "--schedule", "dualpipe-v", "--stages", "2", "--micro-batches", "4"]
        for form in ("csv", "csv-calls"):
            document, = self.results(stagecraft(*export, "--format", form, "--json"))
            csv_text = stagecraft(*export, "--format", form).stdout
            self.assertEqual([line.split(",") for line in csv_text.splitlines()], document["ranks"])
            self.assertEqual(["stagecraft.schedule-export/1", "dualpipe-v", 2, 4, 2, form],
                             [document[key] for key in ("schema", "name", "stages", "micro_batches", "chunks", "format")])

    def test_orders_of_files_are_compared_with_those_by_name(self):
        for name, size in (("1f1b", 8), ("interleaved-1f1b", 8), ("gpipe", 4)):
            export = ["schedule", "export", "--schedule", name, "--stages", "4", "--micro-batches", str(size)]
            self.write(f"{name}.csv", stagecraft(*export).stdout)
        files = ["1f1b.csv", "interleaved-1f1b.csv"]
        ran = stagecraft(*self.COMPARE, *files, "gpipe.csv", "--message", "10ms", cwd=self.folder)
        self.assertEqual(DONE, ran.returncode, ran.stderr)
        rows = {row.pop("name"): row for row in self.results(ran)[0]["schedules"]}
        for file in files:
            self.assertEqual(rows[file.removesuffix(".csv")], rows[file])
        self.assertEqual("it is of 4 stages and 4 micro-batches", rows["gpipe.csv"]["refused"])
        self.write("bad.csv", "0F0,0F0\n")
        ran = stagecraft(*self.COMPARE[:-1], "bad.csv", cwd=self.folder)
        self.assert_refused(ran, code=NO)
        self.assertIn("bad.csv:1:", ran.stderr)

    def test_a_time_that_would_be_nothing_is_refused(self):
        show = ("schedule", "show", "--schedule", "1f1b", "--stages", "2", "--micro-batches", "2", "--forward")
        for time in ("1e-300s", "0.4ns"):
            ran = stagecraft(*show, time)
            self.assert_refused(ran)
            self.assertIn(f"--forward: {time} is less than half a nanosecond", ran.stderr)
        self.assertIn("--forward: '1e30s' is too large", stagecraft(*show, "1e30s").stderr)
        for time in ("0s", "0e5s", "0.5ns"):
            self.assertEqual(DONE, stagecraft(*show, time).returncode, time)

    def test_the_picture_is_the_published_one(self):
        """The ten-second demonstration, character for character."""
        ran = stagecraft("schedule", "show", "--schedule", "1f1b", "--stages", "4", "--micro-batches", "8", "--forward",
                         "1ms", "--input-gradient", "1ms", "--weight-gradient", "1ms")
        self.assertEqual("""\
1f1b   4 stages, 8 micro-batches   F 1 ms, B 2 ms                 one column = 0.5 ms
rank 0  0▁1▁2▁3▁············0▓▓▓4▁1▓▓▓5▁2▓▓▓6▁3▓▓▓7▁4▓▓▓··5▓▓▓··6▓▓▓··7▓▓▓   live 4
rank 1  ··0▁1▁2▁········0▓▓▓3▁1▓▓▓4▁2▓▓▓5▁3▓▓▓6▁4▓▓▓7▁5▓▓▓··6▓▓▓··7▓▓▓····   live 3
rank 2  ····0▁1▁····0▓▓▓2▁1▓▓▓3▁2▓▓▓4▁3▓▓▓5▁4▓▓▓6▁5▓▓▓7▁6▓▓▓··7▓▓▓········   live 2
rank 3  ······0▁0▓▓▓1▁1▓▓▓2▁2▓▓▓3▁3▓▓▓4▁4▓▓▓5▁5▓▓▓6▁6▓▓▓7▁7▓▓▓············   live 1
        ▁ forward  ▓ backward  · idle                 digit: micro-batch (mod 10)
makespan 33 ms   ideal 24 ms   bubble 9 ms = 37.5 % over ideal, 27.3 % of rank time
""", ran.stdout)


if __name__ == "__main__":
    main()
