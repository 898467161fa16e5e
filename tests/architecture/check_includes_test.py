#!/usr/bin/env python3
"""The include check finds what it is there to find. Each test states a small tree and what is wrong in it."""
import tempfile
import unittest
from pathlib import Path

from check_includes import Table, check

OUR_TABLE = (Path(__file__).parent / "allowed_includes.txt").read_text(encoding="utf-8")


def problems_of(tree: dict[str, str], table: str = OUR_TABLE) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in tree.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return check(Path(folder), Table(table))


class Includes(unittest.TestCase):
    def test_an_allowed_include_is_silent(self):
        tree = {"base/units.hpp": "", "sim/engine/run.cpp": '#include <vector>\n#include "base/units.hpp"\n'}
        self.assertEqual(problems_of(tree), [])

    def test_an_include_against_the_arrow_is_found_with_its_line(self):
        tree = {"base/units.hpp": '#pragma once\n#include "models/model.hpp"\n', "models/model.hpp": ""}
        self.assertEqual(
            problems_of(tree),
            ['base/units.hpp:2: base may not include models: "models/model.hpp" (it may: nothing)'])

    def test_the_engine_never_heard_of_a_transformer(self):
        tree = {"sim/engine/run.cpp": '#include "models/model.hpp"\n', "models/model.hpp": ""}
        self.assertIn("sim/engine may not include models", problems_of(tree)[0])

    def test_the_schedule_sees_only_base(self):
        for other in ("sim/program", "sim/plan", "sim/engine", "models"):
            tree = {"sim/schedule/a.cpp": f'#include "{other}/a.hpp"\n', f"{other}/a.hpp": ""}
            self.assertEqual(len(problems_of(tree)), 1, other)

    def test_a_row_may_name_a_single_header(self):
        tree = {"b/yes.hpp": "", "b/no.hpp": "", "a/a.cpp": '#include "b/yes.hpp"\n#include "b/no.hpp"\n'}
        self.assertEqual(
            problems_of(tree, "a: b/yes.hpp\nb:\n"), ['a/a.cpp:2: a may not include b: "b/no.hpp" (it may: b/yes.hpp)'])

    def test_the_row_of_sim_does_not_speak_for_its_subfolders(self):
        tree = {"sim/new/a.cpp": ""}
        self.assertEqual(problems_of(tree), ["sim/new/a.cpp:1: folder sim/new has no row in allowed_includes.txt"])

    def test_nothing_includes_tools_except_tools_and_its_tests(self):
        tree = {"tools/options.hpp": "", "tools/main.cpp": '#include "tools/options.hpp"\n',
                "tests/tools/options_test.cpp": '#include "tools/options.hpp"\n'}
        self.assertEqual(problems_of(tree), [])
        for file in ("sim/simulate.cpp", "bench/a.cpp", "tests/base/a_test.cpp"):
            self.assertEqual(
                problems_of(tree | {file: '#include "tools/options.hpp"\n'}),
                [f'{file}:1: nothing includes tools: "tools/options.hpp"'])

    def test_the_rooms_of_tools_have_rows_of_their_own(self):
        commands = '#include "tools/commands/commands.hpp"\n'
        tree = {"tools/commands/commands.hpp": "", "tools/commands/run.cpp": commands, "tools/program.cpp": commands}
        self.assertEqual(problems_of(tree), [])
        for folder in ("tools/command_line", "tools/tables", "tools/reference"):  # the last row lets all but tools in
            self.assertIn(f"{folder} may not include tools/commands", problems_of(tree | {f"{folder}/a.cpp": commands})[0])

    def test_a_source_includes_its_own_header_first(self):
        tree = {"base/a.hpp": "", "base/b.hpp": "", "base/a.cpp": '// A.\n#include "base/b.hpp"\n#include "base/a.hpp"\n'}
        self.assertEqual(problems_of(tree), ['base/a.cpp:2: the first include is not "base/a.hpp"'])
        self.assertEqual(problems_of(tree | {"base/a.cpp": "int a;\n"}), ['base/a.cpp:1: does not include "base/a.hpp"'])
        self.assertEqual(problems_of(tree | {"base/a.cpp": '#include "base/a.hpp"\n#include "base/b.hpp"\n'}), [])

    def test_an_include_relative_to_the_file_is_found(self):
        tree = {"base/units.hpp": "", "base/units.cpp": '#include "units.hpp"\n'}
        self.assertIn("write includes from its root", problems_of(tree)[0])

    def test_yaml_cpp_is_for_the_reader_alone(self):
        line = "#include <yaml-cpp/yaml.h>\n"
        self.assertEqual(problems_of({"base/yaml_reader.cpp": line}), [])
        self.assertEqual(
            problems_of({"base/text.cpp": line}), ["base/text.cpp:1: <yaml-cpp/yaml.h> belongs to base/yaml_reader.cpp only"])

    def test_libraries_stay_in_their_folders(self):
        homes = {"boost/graph/adjacency_list.hpp": "topology/cluster.cpp", "boost/program_options.hpp": "tools/command_line/options.cpp",
                 "cuda_runtime.h": "calibrate/bench/gemm.cu", "nccl.h": "calibrate/bench/nccl.cu",
                 "nlohmann/json.hpp": "models/huggingface_json.cpp"}
        for header, home in homes.items():
            self.assertEqual(problems_of({home: f"#include <{header}>\n"}), [], header)
            for line in (f"#include <{header}>\n", f'#  include "{header}"\n'):
                self.assertEqual(len(problems_of({"sim/engine/run.cpp": line})), 1, line)

    def test_a_folder_has_one_row(self):
        with self.assertRaisesRegex(ValueError, "two rows"):
            Table("base:\nbase: models\n")

    def test_a_line_that_is_no_row_is_refused(self):
        with self.assertRaisesRegex(ValueError, "line 1: not a row"):
            Table("base models\n")

    def test_our_table_has_no_cycle(self):
        rows = {k: v for k, v in Table(OUR_TABLE).folders.items() if "*" not in v}

        def walk(folder: str, path: tuple[str, ...]):
            self.assertNotIn(folder, path)
            for other in rows.get(folder, []):
                walk(other, (*path, folder))

        for folder in rows:
            walk(folder, ())


if __name__ == "__main__":
    unittest.main()
