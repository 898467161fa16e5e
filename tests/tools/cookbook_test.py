"""What the cookbook prints is what the program says.

usage: cookbook_test.py STAGECRAFT SOURCE_DIR      with STAGECRAFT_BLESS=1 the cookbook is written anew

Each block of docs/cookbook.md that begins with `$ stagecraft …` is run from the source tree; the block's other lines are its
standard output.
"""
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

QUESTIONS = 10


def output_of(program, source, command):
    words = shlex.split(command)
    done = subprocess.run([program, *words[1:]], cwd=source, capture_output=True, text=True, timeout=600,
                          env={**os.environ, "NO_COLOR": "1"})
    if done.returncode != 0:
        sys.exit(f"cookbook.md: `{command}` ends with {done.returncode}\n{done.stderr}")
    return done.stdout


def main():
    program, source = sys.argv[1], Path(sys.argv[2])
    page = source / "docs/cookbook.md"
    before = page.read_text()
    commands = []

    def renew(match):
        commands.append(match[1])
        return f"```\n$ {match[1]}\n{output_of(program, source, match[1])}```"

    after = re.sub(r"```\n\$ (stagecraft [^\n]*)\n(.*?)```", renew, before, flags=re.DOTALL)
    if len(commands) < QUESTIONS or before.count("\n## ") != len(commands):
        sys.exit(f"cookbook.md: {before.count(chr(10) + '## ')} questions, {len(commands)} commands")
    if os.environ.get("STAGECRAFT_BLESS"):
        page.write_text(after)
    elif before != after:
        for old, new in zip(before.splitlines(), after.splitlines()):
            if old != new:
                sys.exit(f"cookbook.md says:\n  {old}\nthe program says:\n  {new}\nSTAGECRAFT_BLESS=1 writes the page anew")
        sys.exit("cookbook.md: the program says more or less than the page")


if __name__ == "__main__":
    main()
